"""Waiting until a settlement or a transfer has a status. The service holds each read until something changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Union

from ._request import NOT_MODIFIED, Answer, Call
from .errors import WaitTimeoutError
from .retry import DeadlineError, Pause

#: A settlement in one of these changes no more.
TERMINAL_STATUSES: Final = ("settled", "rejected", "expired", "failed", "canceled")
#: The longest hold that the service allows, in seconds.
HELD_MAX = 30
#: Without an `ETag`, a change between two reads is not noticed before the hold ends. So it is short.
HELD_UNTAGGED = 1
#: The wait before the next read, when the service has not held the last one.
PAUSE_MAX = 5.0
PAUSE = 0.5
#: However short the wait is, the first answer has so long, in seconds.
FIRST_ANSWER = 2.0


@dataclass(frozen=True)
class Read:
    """A read of the object, and whether the service has held it. `value` is `None` when nothing has changed."""

    value: Mapping[str, Any] | None
    etag: str | None
    held: bool
    retry_after: float | None


Waiting = Generator["Call[Read] | Pause", Any, Any]


#: Statuses, or a condition on the object.
Until = Union[Collection[str], Callable[[Any], object]]


def waiting(read: Call[Any], until: Until, timeout: float, now: Callable[[], float]) -> Waiting:
    """Reads until the object is, or has been, in one of these statuses, or changes no more; or meets the condition.

    `until` may be one status: its text alone would be read as a collection of letters.

    Raises `WaitTimeoutError` after `timeout` seconds, and the fault of the read if there was no answer until then.
    """
    if isinstance(until, str):
        until = (until,)
    start = now()
    end = start + timeout
    deadline = start + max(timeout, FIRST_ANSWER)
    # The first read is not held, so that a status that is already reached returns at once.
    held_s, seen = 0, None
    value: Mapping[str, Any] = {}
    while True:
        try:
            last: Read = yield _held(read, held_s, seen, deadline)
        except DeadlineError as late:
            if not value:
                raise late.error from None
            raise _timeout_error(read, value, until, timeout) from late.error
        value = value if last.value is None else last.value
        if _is_reached(value, until):
            return value
        left = end - now()
        if left <= 0:
            raise _timeout_error(read, value, until, timeout)
        if held_s and (not last.held or value["status"] in TERMINAL_STATUSES):
            yield Pause(min(last.retry_after or PAUSE, PAUSE_MAX, left))
        seen, deadline = last.etag, end
        held_s = max(1, int(min(HELD_MAX if seen else HELD_UNTAGGED, left)))


def _is_reached(value: Mapping[str, Any], until: Until) -> bool:
    if callable(until):
        return bool(until(value))
    statuses = {value["status"], *(step["status"] for step in value.get("timeline", []))}
    return value["status"] in TERMINAL_STATUSES or not statuses.isdisjoint(until)


def _timeout_error(read: Call[Any], value: Mapping[str, Any], until: Until, timeout: float) -> WaitTimeoutError:
    wanted = "as wanted" if callable(until) else " or ".join(sorted(until))
    return WaitTimeoutError(f"{read.path} is {value['status']} and was not {wanted} within {timeout:g} s.", value)


def _held(read: Call[Any], held_s: int, seen: str | None, deadline: float) -> Call[Read]:
    headers = {"Prefer": f"wait={held_s}"} if held_s else {}
    if seen:
        headers["If-None-Match"] = seen
    return replace(read.reading(_read, **headers), held_s=float(held_s), deadline=deadline)


def _read(answer: Answer) -> Read:
    value = None if answer.status == NOT_MODIFIED else answer.json()
    return Read(value, answer.headers.get("etag"), "preference-applied" in answer.headers, answer.retry_after)
