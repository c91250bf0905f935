"""A certificate is believed only if every check passed, and nothing is asked of the service."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from scripted import DEEP, Run, Script, answer

from settlement_service import CertificateFile, CertificateInvalidError, certificates, errors, models

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
STRANGER = Ed25519PrivateKey.from_private_bytes(bytes(32))
CERT_ID = "CERT-" + "0A" * 16
CONTENT: dict[str, Any] = {
    "anchor": {"status": "unanchored"},
    "postings": [
        {"account": "card_clearing", "amount": "250.00", "currency": "USD", "step": "a"},
        {"account": "settlement_funds", "amount": "-250.00", "currency": "USD", "step": "a"},
    ],
    "settlement_id": "stl_1",
}


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def canonical(content: object) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def header_of(**changes: object) -> str:
    return encoded(json.dumps({"alg": "EdDSA", "kid": "k1", "b64": False, "crit": ["b64"], **changes}).encode())


def signed(
    content: bytes, key: Ed25519PrivateKey = KEY, cert_id: str | None = None, **header: object
) -> CertificateFile:
    protected = header_of(**header)
    signature = encoded(key.sign(protected.encode() + b"." + content))
    digest = hashlib.sha256(content).hexdigest()[:32].upper()
    return CertificateFile(cert_id or f"CERT-{digest}", content, f"{protected}..{signature}")


def key_set() -> models.JsonWebKeySet:
    x = encoded(KEY.public_key().public_bytes_raw())
    return {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": x, "kid": "k1", "use": "sig", "alg": "EdDSA"}]}


def check_of(file: CertificateFile | bytes | str, settlement_id: str | None = None) -> str:
    with pytest.raises(CertificateInvalidError) as caught:
        certificates.verify(file, key_set(), settlement_id=settlement_id)
    return caught.value.check


def test_a_valid_certificate_is_its_content() -> None:
    certificate = certificates.verify(signed(canonical(CONTENT)), key_set(), settlement_id="stl_1")
    assert certificate["settlement_id"] == "stl_1"
    assert certificates.verify(signed(canonical({**CONTENT, "note": "Zo\u00eb"})), key_set())


def file_of(certificate: CertificateFile, **changes: object) -> str:
    protected, signature = certificate.signature.split("..")
    members = {"payload": certificate.content.decode(), "protected": protected, "signature": signature}
    return json.dumps({**members, **changes})


def test_the_self_contained_file_is_verified_too() -> None:
    file = file_of(signed(canonical(CONTENT)))
    assert certificates.verify(file, key_set())["settlement_id"] == "stl_1"
    assert certificates.verify(file.encode(), key_set())["settlement_id"] == "stl_1"
    assert check_of(file.replace("250", "999")) == "signature"


def test_every_changed_byte_is_noticed() -> None:
    file = signed(canonical(CONTENT))
    for index in range(len(file.content)):
        changed = file.content[:index] + bytes([file.content[index] ^ 1]) + file.content[index + 1 :]
        assert check_of(CertificateFile(file.cert_id, changed, file.signature)) == "signature"


@pytest.mark.parametrize(
    "file",
    [
        signed(canonical(CONTENT), STRANGER),
        signed(canonical(CONTENT), kid="unknown"),
        signed(canonical(CONTENT), alg="none"),
        signed(canonical(CONTENT), crit=["b64", "exp"]),
        CertificateFile("CERT-1", canonical(CONTENT), "not a signature"),
        CertificateFile("CERT-1", canonical(CONTENT), signed(canonical(CONTENT)).signature + "="),
        b"{}",
        "not json",
        DEEP.decode(),
        CertificateFile("CERT-1", canonical(CONTENT), f"{encoded(DEEP)}..{'A' * 86}"),
        signed(canonical(CONTENT), b64=True),
        signed(canonical(CONTENT), crit=[]),
        file_of(signed(canonical(CONTENT)), payee={"name": "Marcia Brown"}),
        file_of(signed(canonical(CONTENT)), payload=CONTENT),
        file_of(signed(canonical(CONTENT))).replace("{", '{"payload": "another", ', 1),
        '{"payload":"","signatures":[]}',
    ],
)
def test_nothing_but_a_signature_of_a_published_key_is_accepted(file: CertificateFile | bytes | str) -> None:
    assert check_of(file) == "signature"


def test_a_key_of_another_curve_signs_nothing() -> None:
    keys: Any = key_set()
    keys["keys"][0]["crv"] = "X25519"
    with pytest.raises(CertificateInvalidError, match="kind"):
        certificates.verify(signed(canonical(CONTENT)), keys)


def test_the_other_spellings_of_a_signature_are_refused() -> None:
    file = signed(canonical(CONTENT))
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    last = file.signature[-1]
    for letter in set(alphabet) - {last}:
        assert check_of(CertificateFile(file.cert_id, file.content, file.signature[:-1] + letter)) == "signature"


def test_what_is_signed_must_still_be_a_sound_certificate() -> None:
    unbalanced = {**CONTENT, "postings": [*CONTENT["postings"], {"amount": "0.01", "currency": "USD"}]}
    assert check_of(signed(canonical(unbalanced))) == "balanced"
    assert check_of(signed(canonical({**CONTENT, "postings": []}))) == "balanced"
    for amount in ("2.5e2", " 250.00", "250.00\n", "250.", "+250.00"):
        postings = [{"amount": amount, "currency": "USD"}, {"amount": "-250.00", "currency": "USD"}]
        assert check_of(signed(canonical({**CONTENT, "postings": postings}))) == "balanced"
    assert check_of(signed(json.dumps(CONTENT).encode())) == "canonical"
    assert check_of(signed(b"[]")) == "canonical"
    assert check_of(signed(DEEP)) == "canonical"
    assert check_of(signed(canonical(CONTENT), cert_id="CERT-" + "0" * 32)) == "id"
    assert check_of(signed(canonical(CONTENT)), "stl_2") == "settlement"


def test_a_download_has_the_bytes_their_id_and_their_signature(run: Run) -> None:
    headers = {"X-Certificate-Signature": "a..b", "Content-Disposition": f'attachment; filename="{CERT_ID}.json"'}
    script = Script([answer(200, CONTENT, headers)])
    file = run(script, lambda client: client.certificates.download(CERT_ID))
    assert (file.cert_id, file.signature) == (CERT_ID, "a..b")
    assert json.loads(file.content) == CONTENT


def test_an_answer_without_a_signature_is_no_certificate(run: Run) -> None:
    with pytest.raises(errors.UnexpectedAnswerError):
        run(Script([answer(200, CONTENT)]), lambda client: client.certificates.download(CERT_ID))


def test_the_signed_file_is_downloaded_as_its_bytes(run: Run) -> None:
    paths = []
    for act in (
        lambda client: client.certificates.download_signed(CERT_ID),
        lambda client: client.request("GET", f"/v1/caribbean/certificate/{CERT_ID}"),
    ):
        script = Script([answer(200, {"payload": "{}", "protected": "a", "signature": "b"})])
        paths.append((run(script, act), script.requests[0].url.path, script.requests[0].headers["accept"]))
    (file, path, accept), (value, same_path, _) = paths
    assert (json.loads(file), path, accept) == (value, same_path, "application/jose+json")


@pytest.mark.parametrize("reply", [httpx.Response(200, text="<html>"), answer(200, CONTENT)])
def test_an_answer_that_is_no_signed_file_is_none(run: Run, reply: httpx.Response) -> None:
    with pytest.raises(errors.UnexpectedAnswerError):
        run(Script([reply]), lambda client: client.certificates.download_signed(CERT_ID))
