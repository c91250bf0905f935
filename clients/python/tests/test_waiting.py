"""Waiting costs few requests, and ends where the settlement ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace

import httpx
import pytest
from scripted import Run, Script, answer, problem

from settlement_service import RetryPolicy, WaitTimeoutError, errors

HELD = {"Preference-Applied": "wait=30"}


def settlement(*statuses: str, headers: dict[str, str] | None = None) -> httpx.Response:
    """Its tag is its status."""
    timeline = [{"status": status} for status in statuses]
    tag = {"ETag": f'"{statuses[-1]}"'}
    return answer(200, {"status": statuses[-1], "timeline": timeline}, {**tag, **(headers or {})})


def untagged(status: str) -> httpx.Response:
    return answer(200, {"status": status}, HELD)


def unchanged(status: str, headers: dict[str, str] = HELD) -> httpx.Response:
    return httpx.Response(304, headers={"ETag": f'"{status}"', **headers})


def prefers(script: Script) -> Sequence[str | None]:
    return [request.headers.get("prefer") for request in script.requests]


def seen(script: Script) -> Sequence[str | None]:
    return [request.headers.get("if-none-match") for request in script.requests]


def test_the_first_read_is_not_held_and_each_next_one_names_the_answer_before(run: Run) -> None:
    script = Script(
        [
            settlement("accepted"),
            unchanged("accepted"),
            settlement("funded", headers=HELD),
            settlement("settled", headers=HELD),
        ]
    )
    assert run(script, lambda client: client.settlements.wait("s", timeout=600))["status"] == "settled"
    assert seen(script) == [None, '"accepted"', '"accepted"', '"funded"']
    assert prefers(script) == [None, "wait=30", "wait=30", "wait=30"]
    assert script.waits == []


def test_without_a_tag_each_hold_is_short(run: Run) -> None:
    script = Script([*(untagged("accepted") for _ in range(3)), untagged("settled")])
    run(script, lambda client: client.settlements.wait("s", timeout=600))
    assert prefers(script) == [None, "wait=1", "wait=1", "wait=1"]
    assert seen(script) == [None] * 4


@pytest.mark.parametrize("final", ["settled", "rejected", "expired", "failed", "canceled"])
def test_it_ends_where_the_settlement_ends_even_if_that_was_not_waited_for(run: Run, final: str) -> None:
    script = Script([settlement("accepted", final)])
    assert run(script, lambda client: client.settlements.wait("s", until=["funded"]))["status"] == final


def test_a_status_that_was_passed_between_two_reads_counts(run: Run) -> None:
    script = Script([settlement("accepted"), settlement("accepted", "funded", "paying_out", headers=HELD)])
    assert run(script, lambda client: client.settlements.wait("s", until=["funded"]))["status"] == "paying_out"


def test_one_status_alone_can_be_waited_for(run: Run) -> None:
    script = Script([settlement("accepted"), settlement("accepted", "funded", headers=HELD)])
    assert run(script, lambda client: client.settlements.wait("s", until="funded"))["status"] == "funded"


@pytest.mark.parametrize(("asked", "pause"), [("2", 2), ("60", 5)])
def test_a_read_that_was_not_held_is_followed_by_a_short_pause(run: Run, asked: str, pause: float) -> None:
    script = Script(
        [settlement("accepted"), settlement("accepted", headers={"Retry-After": asked}), settlement("settled")]
    )
    run(script, lambda client: client.settlements.wait("s"))
    assert script.waits == [pause]


def test_it_gives_up_after_the_timeout_and_has_the_last_read(run: Run) -> None:
    script = Script([settlement("accepted", "compliance_hold")])
    with pytest.raises(WaitTimeoutError, match="compliance_hold") as caught:
        run(script, lambda client: client.settlements.wait("s", timeout=0))
    assert caught.value.last["status"] == "compliance_hold"
    # However short the wait is, the first answer has its time.
    assert script.requests[0].extensions["timeout"]["read"] == pytest.approx(2, abs=0.5)


class Timed(Script):
    """Time passes only by its waits, and by answers that do not come."""

    def __init__(self, replies: Sequence[object], monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(replies)
        self.late = 0.0
        clock = SimpleNamespace(monotonic=self.now, sleep=self.waits.append)
        monkeypatch.setattr("settlement_service.transport.time", clock)
        monkeypatch.setattr("settlement_service.groups._now", self.now)

    def now(self) -> float:
        return sum(self.waits) + self.late

    def handle(self, request: httpx.Request) -> httpx.Response:
        if isinstance(self.replies[0], httpx.ReadTimeout):
            self.late += request.extensions["timeout"]["read"]
        return super().handle(request)


UNAVAILABLE = problem(503, "temporarily_unavailable", {"Retry-After": "1"})
LATER = problem(429, "rate_limited", {"Retry-After": "45"})


def test_it_has_the_last_read_also_when_nothing_has_changed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Timed([settlement("accepted"), *[unchanged("accepted", {})] * 9], monkeypatch)
    with pytest.raises(WaitTimeoutError) as caught:
        run(script, lambda client: client.settlements.wait("s", timeout=2))
    assert caught.value.last["status"] == "accepted"


def test_it_gives_up_in_time_also_when_the_service_asks_for_a_longer_pause(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Timed([settlement("accepted"), *[unchanged("accepted", {"Retry-After": "5"})] * 9], monkeypatch)
    with pytest.raises(WaitTimeoutError):
        run(script, lambda client: client.settlements.wait("s", timeout=2))
    assert script.now() == 2


def test_it_gives_up_in_time_also_while_the_service_is_unavailable(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Timed([settlement("accepted"), *[UNAVAILABLE] * 60], monkeypatch)
    with pytest.raises(WaitTimeoutError, match="accepted") as caught:
        run(script, lambda client: client.settlements.wait("s", timeout=3))
    assert caught.value.last["status"] == "accepted"
    assert isinstance(caught.value.__cause__, errors.TemporarilyUnavailableError)
    assert script.now() <= 3


def test_it_gives_up_in_time_also_when_an_answer_is_late(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Timed([settlement("accepted"), *[httpx.ReadTimeout("late")] * 60], monkeypatch)
    with pytest.raises(WaitTimeoutError):
        run(script, lambda client: client.settlements.wait("s", timeout=3))
    assert script.now() <= 3


def test_without_any_answer_it_raises_why_there_was_none(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Timed([UNAVAILABLE] * 60, monkeypatch)
    with pytest.raises(errors.TemporarilyUnavailableError) as caught:
        run(script, lambda client: client.settlements.wait("s", timeout=3))
    assert caught.value.__cause__ is None
    assert script.now() <= 3


def test_a_refusal_of_a_read_is_raised_as_it_is(run: Run) -> None:
    script = Script([settlement("accepted"), problem(404, "not_found")])
    with pytest.raises(errors.NotFoundError):
        run(script, lambda client: client.settlements.wait("s", timeout=3))


@pytest.mark.parametrize("fault", [httpx.ConnectError("refused"), UNAVAILABLE, LATER], ids=["refused", "503", "429"])
@pytest.mark.parametrize("policy", [RetryPolicy(), RetryPolicy(total_timeout=3, attempts_max=2)])
def test_an_outage_within_its_timeout_is_waited_out_whatever_the_policy(
    run: Run, monkeypatch: pytest.MonkeyPatch, fault: object, policy: RetryPolicy
) -> None:
    script = Timed([settlement("accepted"), *[fault] * 40, settlement("settled", headers=HELD)], monkeypatch)
    assert run(script, lambda client: client.settlements.wait("s", timeout=6_000), policy)["status"] == "settled"
    assert script.now() > 35


def test_an_outage_to_its_end_is_a_timeout(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Timed([settlement("accepted"), *[httpx.ConnectError("refused")] * 400], monkeypatch)
    with pytest.raises(WaitTimeoutError) as caught:
        run(script, lambda client: client.settlements.wait("s", timeout=600))
    assert caught.value.last["status"] == "accepted"
    assert 590 <= script.now() <= 600


def test_the_hold_is_not_longer_than_the_time_that_is_left(run: Run) -> None:
    script = Script([settlement("accepted"), unchanged("accepted"), settlement("settled", headers=HELD)])
    run(script, lambda client: client.settlements.wait("s", timeout=3.5))
    assert prefers(script) == [None, "wait=3", "wait=3"]


def test_a_wait_without_an_end_holds_as_long_as_the_service_allows(run: Run) -> None:
    script = Script([settlement("accepted"), unchanged("accepted"), settlement("settled", headers=HELD)])
    run(script, lambda client: client.settlements.wait("s", timeout=math.inf))
    assert prefers(script) == [None, "wait=30", "wait=30"]


def test_a_condition_is_waited_for_beyond_the_end_of_the_settlement(run: Run) -> None:
    # The service does not hold the read of what has ended, although it says that it would have.
    script = Script([settlement("settled"), settlement("settled", headers=HELD), settlement("settled", "settled")])
    value = run(script, lambda client: client.settlements.wait("s", until=lambda one: len(one["timeline"]) == 2))
    assert len(value["timeline"]) == 2
    assert script.waits == [0.5]
