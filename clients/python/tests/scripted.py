"""A service that answers as a test says, for both clients: without a server, and without waiting."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio
import httpx
import pytest

from settlement_service import AsyncClient, Client, RetryPolicy

Reply = "httpx.Response | Exception"
KEY = "sk_local_unit"
BASE = "https://api.example.com"
#: JSON that is nested deeper than the stack.
DEEP = b"[" * 100_000 + b"]" * 100_000


def answer(status: int, body: object, headers: Mapping[str, str] | None = None) -> httpx.Response:
    return httpx.Response(status, json=body, headers={"X-Request-ID": "req-1", **(headers or {})})


def problem(status: int, code: str, headers: Mapping[str, str] | None = None, **extras: object) -> httpx.Response:
    about = {"type": f"/problems/{code}", "title": code, "status": status, "detail": "…", "request_id": "req-1"}
    return answer(status, {**about, "code": code, **extras}, headers)


class Script:
    """Answers each request with the next reply, and records the requests and the waits."""

    def __init__(self, replies: Sequence[Any]) -> None:
        self.replies = list(replies)
        self.requests: list[httpx.Request] = []
        self.waits: list[float] = []

    def handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        assert isinstance(reply, httpx.Response)
        # A response that was read in one client cannot be read in the other.
        return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.requests]


def blocking(script: Script, monkeypatch: pytest.MonkeyPatch, policy: RetryPolicy | None = None) -> Client:
    monkeypatch.setattr("time.sleep", script.waits.append)
    # As a partner's own client may: this one follows none all the same.
    http = httpx.Client(transport=httpx.MockTransport(script.handle), follow_redirects=True)
    return Client(BASE, KEY, retry=policy, http=http)


def asynchronous(script: Script, monkeypatch: pytest.MonkeyPatch, policy: RetryPolicy | None = None) -> AsyncClient:
    async def sleep(seconds: float) -> None:
        script.waits.append(seconds)

    monkeypatch.setattr("anyio.sleep", sleep)
    http = httpx.AsyncClient(transport=httpx.MockTransport(script.handle), follow_redirects=True)
    return AsyncClient(BASE, KEY, retry=policy, http=http)


#: Runs one call in the blocking or in the asynchronous client: `run(script, lambda client: client.events.get(…))`.
Run = Callable[..., Any]


def runner(style: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(script: Script, act: Callable[[Any], Any], policy: RetryPolicy | None = None) -> Any:
        if style == "blocking":
            with blocking(script, monkeypatch, policy) as client:
                return act(client)

        async def main() -> Any:
            async with asynchronous(script, monkeypatch, policy) as client:
                return await act(client)

        return anyio.run(main)

    return run
