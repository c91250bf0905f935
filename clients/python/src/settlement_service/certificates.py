"""Verifying a certificate offline. It needs `cryptography`: `pip install settlement-service[certificates]`."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, cast

from ._request import parsed
from .errors import SettlementServiceError
from .models import EvidenceCertificate, JsonWebKeySet

Check = Literal["signature", "id", "canonical", "settlement", "balanced"]

BASE64URL = re.compile(r"^[A-Za-z0-9_-]*$")
AMOUNT = re.compile(r"-?[0-9]+(\.[0-9]+)?")


class CertificateInvalidError(SettlementServiceError):
    """The certificate must not be trusted. `check` is the one that failed first."""

    def __init__(self, check: Check, message: str) -> None:
        super().__init__(message)
        self.check: Check = check


@dataclass(frozen=True)
class CertificateFile:
    """A certificate as it was downloaded: exactly its bytes, and the detached signature over them."""

    cert_id: str
    content: bytes
    signature: str


def verify(
    certificate: CertificateFile | bytes | str, keys: JsonWebKeySet, *, settlement_id: str | None = None
) -> EvidenceCertificate:
    """What the certificate says, when every check passed: nothing is asked of the service.

    `certificate` is a `CertificateFile`, or the self-contained signed file (`application/jose+json`). `keys` are the
    service's public keys, as `client.certificates.keys()` answers them; keep them, because whoever can replace them can
    sign. Give `settlement_id` when you know which settlement the certificate must be of.

    Raises `CertificateInvalidError`.
    """
    if isinstance(certificate, CertificateFile):
        header, separator, signature = certificate.signature.partition("..")
        if not separator:
            raise CertificateInvalidError("signature", "The signature is not a detached JWS.")
        cert_id, content = certificate.cert_id, certificate.content
    else:
        header, content, signature = signed_parts(certificate)
        cert_id = _id_of(content)
    _verify_signature(header, content, signature, keys)
    if cert_id != _id_of(content):
        raise CertificateInvalidError("id", f"The content is not that of {cert_id}.")
    return _verify_content(content, settlement_id)


def _id_of(content: bytes) -> str:
    return f"CERT-{hashlib.sha256(content).hexdigest()[:32].upper()}"


def signed_parts(file: bytes | str) -> tuple[str, bytes, str]:
    """The header, the content and the signature of a flattened JWS with an unencoded payload (RFC 7797).

    A reader could believe any other member of the file, so it has none, and no name twice.
    """
    try:
        members = parsed(file, tuple)
        if isinstance(members, tuple) and sorted(name for name, _ in members) == ["payload", "protected", "signature"]:
            jws = dict(members)
            return jws["protected"], jws["payload"].encode(), jws["signature"]
    except (ValueError, TypeError, AttributeError):
        pass
    raise CertificateInvalidError("signature", "The file is not a signed certificate.")


def _verify_signature(header: str, content: bytes, signature: str, keys: JsonWebKeySet) -> None:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise ImportError("Certificates need `pip install settlement-service[certificates]`.") from None
    try:
        fields = parsed(_decoded(header))
        key = next(key for key in keys["keys"] if key["kid"] == fields["kid"])
        kind = (fields["alg"], fields["b64"], fields["crit"], key["crv"])
        public_key = Ed25519PublicKey.from_public_bytes(_decoded(key["x"]))
        public_key.verify(_decoded(signature), header.encode() + b"." + content)
    except StopIteration:
        raise CertificateInvalidError("signature", "No key of the key set has the signature's key id.") from None
    except (InvalidSignature, ValueError, KeyError, TypeError, AttributeError):
        raise CertificateInvalidError("signature", "No key of the key set signed exactly these bytes.") from None
    if kind != ("EdDSA", False, ["b64"], "Ed25519"):
        raise CertificateInvalidError("signature", "The signature is of a kind that this client does not know.")


def _verify_content(content: bytes, settlement_id: str | None) -> EvidenceCertificate:
    try:
        certificate: Mapping[str, Any] = parsed(content)
        canonical = json.dumps(certificate, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        subject, is_balanced = certificate["settlement_id"], _is_balanced(certificate)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise CertificateInvalidError("canonical", "The content is not a certificate.") from None
    if canonical != content:
        raise CertificateInvalidError("canonical", "The content is not canonical JSON (RFC 8785).")
    if settlement_id is not None and subject != settlement_id:
        raise CertificateInvalidError("settlement", f"It is of settlement {subject}.")
    if not is_balanced:
        raise CertificateInvalidError("balanced", "The postings do not sum to zero in each currency.")
    return cast("EvidenceCertificate", certificate)


def _is_balanced(certificate: Mapping[str, Any]) -> bool:
    sums: defaultdict[str, Decimal] = defaultdict(Decimal)
    for posting in certificate["postings"]:
        if not AMOUNT.fullmatch(posting["amount"]):
            return False
        sums[posting["currency"]] += Decimal(posting["amount"])
    return bool(sums) and not any(sums.values())


def _encoded(content: bytes) -> bytes:
    return base64.urlsafe_b64encode(content).rstrip(b"=")


def _decoded(text: str) -> bytes:
    """Raises `ValueError` for anything but the one base64url text of some bytes."""
    if not BASE64URL.match(text):
        raise ValueError
    try:
        content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise ValueError from None
    if _encoded(content).decode() != text:
        raise ValueError
    return content
