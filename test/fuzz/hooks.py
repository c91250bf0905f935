"""
Signs the generated events of the providers, so that they are read. Without secrets nothing is signed. Leaves the
headers that frame a message to the HTTP client.
"""

import hashlib
import hmac
import os
import time

import schemathesis
from requests.auth import AuthBase
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.meta import negated_parameters

SECRETS = {
    provider: secret
    for provider in ("cardproc", "bankledger", "idverify")
    if (secret := os.environ.get(f"FUZZ_SECRET_{provider.upper()}"))
}


# With a wrong one, the bytes are no HTTP request: test/attack/wire.test.ts sends those.
FRAMING = {"content-length", "transfer-encoding"}


@schemathesis.hook
def filter_headers(context, headers):
    return not any(name.lower() in FRAMING for name in headers or {})


# An unknown header is no fault of a request: every proxy adds some.
UNKNOWN_HEADER = "x-schemathesis-unknown-property"


@schemathesis.hook
def filter_case(context, case):
    if any(name.lower() == UNKNOWN_HEADER for name in case.headers or {}):
        return False
    # The configured session overwrites a wrong `authorization`, so that a valid request is sent.
    return not any(name.lower() == "authorization" for name, _ in negated_parameters(case.meta))


def digest(secret: str, content: bytes) -> str:
    return hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()


class Signature(AuthBase):
    """Signs the bytes that are sent, which are known only when the request is prepared."""

    def __call__(self, request):
        body = request.body or b""
        content = body.encode() if isinstance(body, str) else body
        provider = request.path_url.split("?")[0].rsplit("/", 1)[-1]
        secret = SECRETS.get(provider)
        if secret is None or not isinstance(content, bytes):
            return request
        if provider == "cardproc":
            now = str(int(time.time()))
            request.headers["Cardproc-Signature"] = f"t={now},v1={digest(secret, now.encode() + b'.' + content)}"
        elif provider == "bankledger":
            request.headers["X-Signature"] = digest(secret, content)
        else:
            request.headers["X-Payload-Digest"] = digest(secret, content)
            request.headers["X-Payload-Digest-Alg"] = "HMAC_SHA256_HEX"
        return request


@schemathesis.auth().apply_to(path_regex="^/v2/webhooks/")
class ProviderSignature:
    def get(self, case, context):
        return Signature()

    def set(self, case, data, context):
        # A case that is about a wrong or missing header must keep it.
        if not any(location == ParameterLocation.HEADER for _, location in negated_parameters(case.meta)):
            case._auth = data
