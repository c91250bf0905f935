"""Receiving events: `verify` checks a delivery (Standard Webhooks) and returns its event, typed."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Iterable, Sequence
from typing import Literal, Protocol, cast

from ._request import parsed
from .errors import SettlementServiceError
from .models import WebhookEvent

#: How far a delivery's timestamp may be from this machine's clock, in seconds.
TOLERANCE = 300
SECRET_PREFIX = "whsec_"  # noqa: S105 - what a secret begins with is no secret
VERSION = "v1,"
KEY_BYTES_MIN = 12

Reason = Literal[
    "missing_header", "malformed_timestamp", "timestamp_outside_tolerance", "no_matching_signature", "invalid_body"
]


class WebhookVerificationError(SettlementServiceError):
    """The delivery must not be used. Answer 400. `reason` says why."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(f"The delivery is not verified: {reason}.")
        self.reason: Reason = reason


class Headers(Protocol):
    """The headers of a request, as every web framework has them. Their case does not matter."""

    def items(self) -> Iterable[tuple[str, str]]: ...


def verify(
    body: bytes,
    headers: Headers,
    secret: str | Sequence[str],
    *,
    tolerance: float = TOLERANCE,
    now: float | None = None,
) -> WebhookEvent:
    """The event of a delivery that is signed with one of the secrets.

    `body` is the request's body as it was received, before anything parsed it. While a secret rotates, every delivery
    has two signatures, and one secret is enough to verify it; give both if you cannot deploy the new one at once.
    The same event can arrive twice: handle each `event["id"]` once. Event types that this client does not know yet are
    returned too, so ignore those that you do not handle.

    Raises `WebhookVerificationError`, and `ValueError` when a secret is not one of the service.
    """
    if not isinstance(body, bytes):
        raise TypeError("Give the body as bytes, as it was received: parsed and written again, it is another one.")
    keys = [_key(one) for one in ([secret] if isinstance(secret, str) else secret)]
    if not keys:
        raise ValueError("Give at least one secret.")
    given = {name.lower(): value for name, value in headers.items()}
    event_id, sent_at = given.get("webhook-id"), given.get("webhook-timestamp")
    signatures = given.get("webhook-signature")
    if not event_id or not sent_at or not signatures:
        raise WebhookVerificationError("missing_header")
    if not (sent_at.isascii() and sent_at.isdigit()):
        raise WebhookVerificationError("malformed_timestamp")
    content = _bytes(f"{event_id}.{sent_at}.") + body
    if not _is_signed(content, signatures, keys):
        raise WebhookVerificationError("no_matching_signature")
    # Not `>`, which is false for a tolerance that is no number: then a delivery of any age would do.
    if not abs((time.time() if now is None else now) - int(sent_at)) <= tolerance:
        raise WebhookVerificationError("timestamp_outside_tolerance")
    return _event(body)


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    # With a short or empty key anybody can sign. An unset variable is an empty secret.
    if not secret.startswith(SECRET_PREFIX) or len(key) < KEY_BYTES_MIN:
        raise ValueError(f"A webhook's secret is {SECRET_PREFIX} and base64.")
    return key


def _bytes(text: str) -> bytes:
    """Frameworks may decode a header's invalid bytes to surrogates. The service signs none, so they match nothing."""
    return text.encode(errors="surrogatepass")


def _is_signed(content: bytes, signatures: str, keys: Sequence[bytes]) -> bool:
    given = [_bytes(one) for one in signatures.split(" ")]
    matches = False
    for key in keys:
        expected = VERSION.encode() + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest())
        for one in given:
            matches |= hmac.compare_digest(one, expected)
    return matches


def _event(body: bytes) -> WebhookEvent:
    try:
        event = parsed(body)
    except ValueError:
        raise WebhookVerificationError("invalid_body") from None
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        raise WebhookVerificationError("invalid_body")
    return cast("WebhookEvent", event)
