"""Where the examples find the service: `API` and `API_KEY`, as in the README."""

from __future__ import annotations

import os

from settlement_service import Client

BASE_URL = os.environ.get("API", "http://127.0.0.1:3000")


def connect() -> Client:
    """Of an example that needs a key: without one, it ends with a sentence."""
    key = os.environ.get("API_KEY")
    if not key:
        raise SystemExit("Set API_KEY to a key of yours, as in the README's five minutes.")
    return Client(BASE_URL, key)
