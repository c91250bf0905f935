"""When a request is sent again. The same rules hold for the blocking and for the asynchronous client."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from ._request import NOT_MODIFIED, Answer, Call
from .errors import ConnectionFailedError, error_of, problem_of

#: The service carried nothing out.
NOT_DONE = 429
#: The service, or a proxy before it, could not answer now.
UNAVAILABLE = (502, 503, 504)
#: Refusals of the service itself with a status of 5xx, before any work.
REFUSED = ("launch_gates_closed", "local_sandbox_only", "provider_not_configured", "remote_environment")
#: As long as nothing has answered a client, its address is rather wrong than down for a moment.
FIRST_CONTACT_ATTEMPTS_MAX = 3
#: A timeout in seconds that is not over yet.
SHORTEST = 0.001


@dataclass(frozen=True)
class RetryPolicy:
    """The limits of one request and its repetitions. Times are in seconds."""

    #: For all attempts and the waits between them.
    total_timeout: float = 60.0
    #: For one attempt. A waiting read takes longer by as much as it may be held.
    attempt_timeout: float = 20.0
    #: For a connection to be open: as long as nothing has answered this client, for all attempts of a call together.
    connect_timeout: float = 10.0
    attempts_max: int = 20
    #: The first wait; each next one is twice as long, up to `wait_max`. A random part of up to one half is taken off.
    wait_first: float = 0.1
    wait_max: float = 5.0
    #: A longer `Retry-After` is not waited for: the error is raised at once, and has it.
    retry_after_max: float = 30.0


@dataclass(frozen=True)
class Send:
    """The transport answers with an `Answer` or a `NoAnswer`."""

    timeout: float
    connect_timeout: float


@dataclass(frozen=True)
class NoAnswer:
    """`maybe_done`: the request may have reached the service. `is_final`: a next attempt would end in the same way."""

    cause: str
    maybe_done: bool
    connect_timed_out: bool = False
    is_final: bool = False


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass
class Address:
    """Where a client sends to, and whether anything has ever answered there."""

    url: str
    has_answered: bool = False


class DeadlineError(Exception):
    """The call would be repeated, but its deadline comes first. `error` is how the last attempt ended."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


Exchange = Generator["Send | Pause", "Answer | NoAnswer | None", Answer]


def exchange(
    call: Call[Any],
    policy: RetryPolicy,
    address: Address,
    now: Callable[[], float],
    draw: Callable[[], float] = random.random,
) -> Exchange:
    """One request with its repetitions. The driver sends and pauses as it is told, and gets the successful answer.

    Raises `ApiError`, `UnexpectedAnswerError` or `ConnectionFailedError`, and `DeadlineError` at the call's deadline.
    """
    start = now()
    end = start + policy.total_timeout if call.deadline is None else call.deadline
    # A wait that has had an answer ends at its deadline, and not before.
    attempts_max, asked_max = (math.inf, math.inf) if call.held_s else (policy.attempts_max, policy.retry_after_max)
    maybe_done = False
    for attempt in itertools.count(1):
        connect = policy.connect_timeout - (0 if address.has_answered else now() - start)
        outcome = yield Send(
            min(policy.attempt_timeout + call.held_s, max(end - now(), SHORTEST)), max(connect, SHORTEST)
        )
        if isinstance(outcome, Answer) and (outcome.status < 300 or outcome.status == NOT_MODIFIED):
            address.has_answered = True
            return outcome
        maybe_done = maybe_done or _maybe_done(outcome)
        if isinstance(outcome, Answer):
            address.has_answered = True
        wait = _wait_before(attempt, outcome, policy, draw)
        is_asked_too_long = isinstance(outcome, Answer) and (outcome.retry_after or 0) > asked_max
        is_silent = isinstance(outcome, NoAnswer) and outcome.connect_timed_out
        is_wrong = not address.has_answered and (is_silent or attempt >= FIRST_CONTACT_ATTEMPTS_MAX)
        is_last = attempt >= attempts_max or is_wrong or is_asked_too_long
        if is_last or not _may_repeat(call, outcome):
            raise _fault(call, address, outcome, maybe_done)
        if now() + wait > end:
            fault = _fault(call, address, outcome, maybe_done)
            raise DeadlineError(fault) if end == call.deadline else fault
        yield Pause(wait)
    raise AssertionError("it ends by its policy or its deadline")


def _maybe_done(outcome: Answer | NoAnswer | None) -> bool:
    """Whether the service may have carried out an attempt that ended so."""
    if not isinstance(outcome, Answer):
        return outcome is None or outcome.maybe_done
    if outcome.status == NOT_DONE:
        return False
    problem = problem_of(outcome)
    return problem is None or (outcome.status >= 500 and problem.get("code") not in REFUSED)


def _may_repeat(call: Call[Any], outcome: Answer | NoAnswer | None) -> bool:
    if isinstance(outcome, NoAnswer):
        return not outcome.is_final and (call.repeatable or not outcome.maybe_done)
    if not isinstance(outcome, Answer):
        return False
    problem = problem_of(outcome)
    if outcome.status == NOT_DONE:
        # A quota is not free again so soon.
        return problem is None or problem.get("code") != "quota_exceeded"
    # Without a problem document it is a proxy's answer. The other codes of 502 and 503 do not pass by waiting.
    passes = problem is None or problem.get("code") == "temporarily_unavailable"
    return call.repeatable and outcome.status in UNAVAILABLE and passes


def _wait_before(
    attempt: int, outcome: Answer | NoAnswer | None, policy: RetryPolicy, draw: Callable[[], float]
) -> float:
    # A higher power is no number any more.
    wait = min(policy.wait_first * 2.0 ** min(attempt - 1, 100), policy.wait_max)
    wait -= wait / 2 * draw()
    asked = outcome.retry_after if isinstance(outcome, Answer) else None
    if asked is None:
        return wait
    # Clients with the same Retry-After do not all come back at once.
    return asked + policy.wait_first * draw()


def _fault(call: Call[Any], address: Address, outcome: Answer | NoAnswer | None, maybe_done: bool) -> Exception:
    if isinstance(outcome, Answer):
        return error_of(outcome, maybe_done=maybe_done, intent=call.intent)
    cause = outcome.cause if outcome else "no answer"
    message = f"{call.method} {address.url}{call.path}: {cause}"
    if maybe_done and not _maybe_done(outcome):
        message += ". The service may have carried out an earlier attempt."
    return ConnectionFailedError(message, maybe_done=maybe_done, intent=call.intent)
