"""Waiting until a settlement or a transfer has a status. The service holds each read until something changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Union

from ._request import Answer, Call
from .errors import WaitTimeoutError
from .retry import Pause

#: A settlement in one of these changes no more.
TERMINAL: Final = ("settled", "rejected", "expired", "failed", "canceled")
#: The longest hold that the service allows, and the first one, in seconds. Each next one is twice as long.
HELD_MAX = 30
HELD_MIN = 1
#: The wait before the next read, when the service has not held the last one.
PAUSE_MAX = 5.0
PAUSE = 0.5


@dataclass(frozen=True)
class Read:
    """A read of the object, and whether the service has held it."""

    value: Mapping[str, Any]
    held: bool
    retry_after: float | None


Waiting = Generator["Call[Read] | Pause", Any, Any]


#: Statuses, or a condition on the object.
Until = Union[Collection[str], Callable[[Any], object]]


def waiting(read: Call[Any], until: Until, timeout: float, now: Callable[[], float]) -> Waiting:
    """Reads until the object is, or has been, in one of these statuses, or changes no more; or meets the condition.

    Raises `WaitTimeoutError` after `timeout` seconds.
    """
    end = now() + timeout
    held_s = 0
    changed_at: object = None
    while True:
        last: Read = yield _held(read, held_s)
        if _is_reached(last.value, until):
            return last.value
        left = end - now()
        if left <= 0:
            wanted = "as wanted" if callable(until) else " or ".join(sorted(until))
            message = f"{read.path} is {last.value['status']} and was not {wanted} within {timeout:g} s."
            raise WaitTimeoutError(message, last.value)
        if held_s and not last.held:
            yield Pause(min(last.retry_after or PAUSE, PAUSE_MAX, left))
        # The first read is not held, so that a status that is already reached returns at once. After a change the hold
        # is short: the service holds from the state that it finds, so it does not notice what changed before.
        is_changed = last.value.get("updated_at") != changed_at
        changed_at = last.value.get("updated_at")
        held_s = HELD_MIN if is_changed or not held_s else held_s * 2
        held_s = max(HELD_MIN, min(held_s, HELD_MAX, int(left)))


def _is_reached(value: Mapping[str, Any], until: Until) -> bool:
    if callable(until):
        return bool(until(value))
    statuses = {value["status"], *(step["status"] for step in value.get("timeline", []))}
    return value["status"] in TERMINAL or not statuses.isdisjoint(until)


def _held(read: Call[Any], held_s: int) -> Call[Read]:
    headers = {"Prefer": f"wait={held_s}"} if held_s else {}
    return replace(read.reading(_read, **headers), held_s=float(held_s))


def _read(answer: Answer) -> Read:
    return Read(answer.json(), "preference-applied" in answer.headers, answer.retry_after)
