"""A delivery is used only if it is signed with a known secret, now."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math

import pytest
from scripted import DEEP

from settlement_service import WebhookVerificationError, webhooks

NOW = 1_795_248_000
SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER = "whsec_" + base64.b64encode(bytes(32)).decode()
BODY = json.dumps({"id": "e1", "type": "settlement.settled", "data": {}}).encode()


def signature(secret: str, body: bytes = BODY, sent_at: str = str(NOW)) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return (
        "v1,"
        + base64.b64encode(hmac.new(key, b"e1." + sent_at.encode() + b"." + body, hashlib.sha256).digest()).decode()
    )


def headers(signatures: str, sent_at: str = str(NOW)) -> dict[str, str]:
    return {"Webhook-Id": "e1", "WEBHOOK-TIMESTAMP": sent_at, "webhook-signature": signatures}


def reason_of(body: bytes, given: dict[str, str], **options: float) -> str:
    with pytest.raises(WebhookVerificationError) as caught:
        webhooks.verify(body, given, SECRET, now=options.get("now", NOW))
    return caught.value.reason


def test_a_signed_delivery_is_its_event_whatever_the_case_of_its_headers() -> None:
    event = webhooks.verify(BODY, headers(signature(SECRET)), SECRET, now=NOW)
    assert event["type"] == "settlement.settled"


def test_one_of_several_signatures_and_one_of_several_secrets_is_enough() -> None:
    for both in (f"{signature(OTHER)} {signature(SECRET)}", f"{signature(SECRET)} {signature(OTHER)}"):
        assert webhooks.verify(BODY, headers(both), SECRET, now=NOW)
    for secrets in ([OTHER, SECRET], [SECRET, OTHER]):
        assert webhooks.verify(BODY, headers(signature(SECRET)), secrets, now=NOW)


@pytest.mark.parametrize("name", ["Webhook-Id", "WEBHOOK-TIMESTAMP", "webhook-signature"])
def test_a_missing_header_is_reported(name: str) -> None:
    given = headers(signature(SECRET))
    assert reason_of(BODY, {**given, name: ""}) == "missing_header"
    del given[name]
    assert reason_of(BODY, given) == "missing_header"


@pytest.mark.parametrize("text", [chr(0xDC80), chr(0xD800)])
def test_a_header_that_is_no_text_is_no_matching_signature(text: str) -> None:
    assert reason_of(BODY, headers(f"v1,{text}")) == "no_matching_signature"
    assert reason_of(BODY, {**headers(signature(SECRET)), "Webhook-Id": text}) == "no_matching_signature"


@pytest.mark.parametrize("sent_at", ["soon", "1e9", "-1", "\u0661"])
def test_a_malformed_timestamp_is_reported(sent_at: str) -> None:
    assert reason_of(BODY, headers("v1,x", sent_at)) == "malformed_timestamp"


@pytest.mark.parametrize("now", [NOW - 301, NOW + 301])
def test_an_old_and_a_future_delivery_are_refused(now: int) -> None:
    assert reason_of(BODY, headers(signature(SECRET)), now=now) == "timestamp_outside_tolerance"


@pytest.mark.parametrize("now", [NOW - 300, NOW + 300])
def test_the_tolerance_belongs_to_the_allowed_time(now: int) -> None:
    assert webhooks.verify(BODY, headers(signature(SECRET)), SECRET, now=now)
    with pytest.raises(WebhookVerificationError, match="timestamp_outside_tolerance"):
        webhooks.verify(BODY, headers(signature(SECRET)), SECRET, now=now, tolerance=299)


def test_a_tolerance_that_is_no_number_refuses_every_delivery() -> None:
    with pytest.raises(WebhookVerificationError, match="timestamp_outside_tolerance"):
        webhooks.verify(BODY, headers(signature(SECRET)), SECRET, now=NOW, tolerance=math.nan)


@pytest.mark.parametrize(
    "signatures",
    [signature(OTHER), "v1,", "v1", signature(SECRET).replace("v1,", "v2,"), signature(SECRET) + "A", "ü", " "],
)
def test_no_other_signature_is_accepted(signatures: str) -> None:
    assert reason_of(BODY, headers(signatures)) == "no_matching_signature"


def test_every_byte_and_the_time_and_the_id_are_signed() -> None:
    for index in range(len(BODY)):
        changed = BODY[:index] + bytes([BODY[index] ^ 1]) + BODY[index + 1 :]
        assert reason_of(changed, headers(signature(SECRET))) == "no_matching_signature"
    assert reason_of(BODY, headers(signature(SECRET), str(NOW + 1))) == "no_matching_signature"
    assert reason_of(BODY, {**headers(signature(SECRET)), "Webhook-Id": "e2"}) == "no_matching_signature"


@pytest.mark.parametrize("body", [b"", b"[]", b"\xff", b'{"type":1}', pytest.param(DEEP, id="deep")])
def test_a_signed_body_that_is_no_event_is_reported(body: bytes) -> None:
    assert reason_of(body, headers(signature(SECRET, body))) == "invalid_body"


def test_mistakes_of_the_receiver_are_named_in_words() -> None:
    with pytest.raises(TypeError, match="bytes"):
        webhooks.verify(BODY.decode(), headers(signature(SECRET)), SECRET)  # type: ignore[arg-type]
    for broken in ("whsec_not base64", f"{SECRET[:12]} {SECRET[12:]}"):
        with pytest.raises(ValueError, match="whsec_"):
            webhooks.verify(BODY, headers(signature(SECRET)), broken, now=NOW)
    with pytest.raises(ValueError, match="at least one"):
        webhooks.verify(BODY, headers(signature(SECRET)), [])


SHORT = "whsec_" + base64.b64encode(bytes(11)).decode()


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_AAAA", SHORT, SECRET.removeprefix("whsec_"), [SECRET, ""]])
def test_an_empty_or_broken_secret_is_refused_so_that_nobody_signs_with_it(secret: str | list[str]) -> None:
    with pytest.raises(ValueError, match="whsec_"):
        webhooks.verify(BODY, headers(signature(secret if isinstance(secret, str) else secret[-1])), secret, now=NOW)
