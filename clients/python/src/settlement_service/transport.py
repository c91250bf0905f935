"""The two transports. They send and pause as `retry.exchange` says, and know nothing of when to repeat."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, TypedDict, TypeVar
from urllib.parse import urlencode, urlsplit

import anyio
import httpx

from ._request import Answer, Call, query_pairs
from .errors import UnexpectedAnswerError
from .retry import Address, NoAnswer, Pause, RetryPolicy, Send, exchange

T = TypeVar("T")

USER_AGENT = "settlement-service-python/0"
CREDENTIAL = re.compile(r"[\x21-\x7e]+")
#: After these, nothing has reached the service.
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

#: In seconds. The limits of `httpx` shall end an attempt first, because `httpx` knows whether anything was sent.
MARGIN = 0.1

OnRetry = Callable[[str, float], None]


@dataclass
class Settings:
    """What both transports need to know."""

    base_url: str
    #: The header of the credential, and its value.
    credential: tuple[str, str] | None = field(repr=False)
    policy: RetryPolicy
    on_retry: OnRetry | None

    def __post_init__(self) -> None:
        self.base_url = self.base_url.rstrip("/")
        parts = urlsplit(self.base_url)
        is_address = parts.scheme in ("http", "https") and "@" not in parts.netloc
        if not is_address or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("base_url is an address such as https://api.example.com")
        if parts.scheme == "http" and not _is_this_machine(parts.hostname):
            raise ValueError("base_url must be https: a key must not be sent over http")

    def authorize(self, name: str, value: str) -> None:
        if not CREDENTIAL.fullmatch(value.removeprefix("Bearer ")):
            raise ValueError("The credential has characters that no credential of the service has.")
        self.credential = (name, value)

    def request_of(self, call: Call[Any]) -> tuple[str, str, dict[str, str], bytes | None]:
        headers = {"Accept": "application/json", "User-Agent": USER_AGENT, **call.headers}
        if self.credential:
            headers[self.credential[0]] = self.credential[1]
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        if not call.path.startswith("/"):
            # It would be a part of the host's name, as in a stored intent that was altered. The key would go there.
            raise ValueError("A path begins with /.")
        query = urlencode(query_pairs(call.query))
        return call.method, f"{self.base_url}{call.path}{'?' if query else ''}{query}", headers, call.body

    def tell_retry(self, call: Call[Any], seconds: float) -> None:
        if self.on_retry:
            self.on_retry(f"{call.method} {call.path}", seconds)


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class Transport:
    """Blocking."""

    def __init__(self, settings: Settings, http: httpx.Client | None = None) -> None:
        self.settings = settings
        self.address = Address(settings.base_url)
        self.http = http or httpx.Client(follow_redirects=False)

    def run(self, call: Call[T]) -> T:
        steps = exchange(call, self.settings.policy, self.address, time.monotonic)
        step = next(steps)
        while True:
            try:
                if isinstance(step, Pause):
                    self.settings.tell_retry(call, step.seconds)
                    self.pause(step.seconds)
                    step = next(steps)
                else:
                    step = steps.send(self._send(call, step))
            except StopIteration as end:
                return _value(call, end.value)

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def _send(self, call: Call[T], step: Send) -> Answer | NoAnswer:
        method, url, headers, body = self.settings.request_of(call)
        options = _options(step)
        deadline = time.monotonic() + step.timeout
        try:
            with self.http.stream(method, url, headers=headers, content=body, **options) as response:
                parts = []
                for part in response.iter_bytes():
                    parts.append(part)
                    if time.monotonic() > deadline:
                        return NoAnswer("the answer took too long", maybe_done=True)
                return _answer(response, b"".join(parts))
        except httpx.RequestError as error:
            return _no_answer(error)


class AsyncTransport:
    """Asynchronous, on asyncio or trio."""

    def __init__(self, settings: Settings, http: httpx.AsyncClient | None = None) -> None:
        self.settings = settings
        self.address = Address(settings.base_url)
        self.http = http or httpx.AsyncClient(follow_redirects=False)

    async def run(self, call: Call[T]) -> T:
        steps = exchange(call, self.settings.policy, self.address, time.monotonic)
        step = next(steps)
        while True:
            try:
                if isinstance(step, Pause):
                    self.settings.tell_retry(call, step.seconds)
                    await self.pause(step.seconds)
                    step = next(steps)
                else:
                    step = steps.send(await self._send(call, step))
            except StopIteration as end:
                return _value(call, end.value)

    async def pause(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    async def _send(self, call: Call[T], step: Send) -> Answer | NoAnswer:
        method, url, headers, body = self.settings.request_of(call)
        options = _options(step)
        # The limits of `httpx` begin again with each part that arrives, also of the headers. This one does not.
        with anyio.move_on_after(step.timeout + MARGIN):
            try:
                async with self.http.stream(method, url, headers=headers, content=body, **options) as response:
                    return _answer(response, await response.aread())
            except httpx.RequestError as error:
                return _no_answer(error)
        return NoAnswer("the answer took too long", maybe_done=True)


class _Options(TypedDict):
    timeout: httpx.Timeout
    follow_redirects: bool


def _options(step: Send) -> _Options:
    """No redirect is followed, whatever the given `httpx` client does: it would carry the key to another address."""
    timeout = httpx.Timeout(_seconds(step.timeout), connect=_seconds(min(step.timeout, step.connect_timeout)))
    return {"timeout": timeout, "follow_redirects": False}


def _seconds(limit: float) -> float | None:
    """A socket takes no infinite number."""
    return None if math.isinf(limit) else limit


def _value(call: Call[T], answer: Answer) -> T:
    try:
        return call.read(answer)
    except ValueError:
        raise UnexpectedAnswerError(answer, maybe_done=True, intent=call.intent) from None


def _answer(response: httpx.Response, content: bytes) -> Answer:
    return Answer(response.status_code, {name.lower(): value for name, value in response.headers.items()}, content)


def _no_answer(error: httpx.RequestError) -> NoAnswer:
    if isinstance(error, httpx.LocalProtocolError):
        # Its text can have a header's value. Under HTTP/2 it can also come after the request was sent.
        return NoAnswer("LocalProtocolError", maybe_done=True, is_final=True)
    cause = f"{type(error).__name__} {error}".strip()
    return NoAnswer(
        cause,
        maybe_done=not isinstance(error, NOT_SENT),
        connect_timed_out=isinstance(error, httpx.ConnectTimeout),
    )
