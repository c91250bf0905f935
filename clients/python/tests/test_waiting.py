"""Waiting costs few requests, and ends where the settlement ends."""

from __future__ import annotations

from collections.abc import Sequence

import httpx
import pytest
from scripted import Run, Script, answer

from settlement_service import WaitTimeoutError

HELD = {"Preference-Applied": "wait=30"}


def settlement(*statuses: str, headers: dict[str, str] | None = None) -> httpx.Response:
    timeline = [{"status": status} for status in statuses]
    return answer(200, {"status": statuses[-1], "timeline": timeline, "updated_at": statuses[-1]}, headers)


def prefers(script: Script) -> Sequence[str | None]:
    return [request.headers.get("prefer") for request in script.requests]


def test_the_first_read_is_not_held_and_each_next_one_is(run: Run) -> None:
    script = Script([settlement("accepted"), settlement("funded", headers=HELD), settlement("settled", headers=HELD)])
    assert run(script, lambda client: client.settlements.wait("s"))["status"] == "settled"
    assert prefers(script) == [None, "wait=1", "wait=1"]
    assert script.waits == []


def test_a_hold_doubles_while_nothing_changes_and_is_short_again_after_a_change(run: Run) -> None:
    same = [settlement("accepted", headers=HELD) for _ in range(7)]
    script = Script([*same, settlement("funded", headers=HELD), settlement("settled", headers=HELD)])
    run(script, lambda client: client.settlements.wait("s", timeout=600))
    expected = [None, *(f"wait={held}" for held in [1, 2, 4, 8, 16, 30, 30, 1])]
    assert prefers(script) == expected


@pytest.mark.parametrize("final", ["settled", "rejected", "expired", "failed", "canceled"])
def test_it_ends_where_the_settlement_ends_even_if_that_was_not_waited_for(run: Run, final: str) -> None:
    script = Script([settlement("accepted", final)])
    assert run(script, lambda client: client.settlements.wait("s", until=["funded"]))["status"] == final


def test_a_status_that_was_passed_between_two_reads_counts(run: Run) -> None:
    script = Script([settlement("accepted"), settlement("accepted", "funded", "paying_out", headers=HELD)])
    assert run(script, lambda client: client.settlements.wait("s", until=["funded"]))["status"] == "paying_out"


def test_a_read_that_was_not_held_is_followed_by_a_pause(run: Run) -> None:
    script = Script(
        [settlement("accepted"), settlement("accepted", headers={"Retry-After": "2"}), settlement("settled")]
    )
    run(script, lambda client: client.settlements.wait("s"))
    assert script.waits == [2]


def test_it_gives_up_after_the_timeout_and_has_the_last_read(run: Run) -> None:
    script = Script([settlement("accepted", "compliance_hold")])
    with pytest.raises(WaitTimeoutError, match="compliance_hold") as caught:
        run(script, lambda client: client.settlements.wait("s", timeout=0))
    assert caught.value.last["status"] == "compliance_hold"


def test_the_hold_is_not_longer_than_the_time_that_is_left(run: Run) -> None:
    same = [settlement("accepted", headers=HELD) for _ in range(4)]
    script = Script([*same, settlement("settled", headers=HELD)])
    run(script, lambda client: client.settlements.wait("s", timeout=3.5))
    assert prefers(script) == [None, "wait=1", "wait=2", "wait=3", "wait=3"]


def test_a_condition_is_waited_for_beyond_the_end_of_the_settlement(run: Run) -> None:
    script = Script([settlement("settled"), settlement("settled"), settlement("settled", "settled")])
    value = run(script, lambda client: client.settlements.wait("s", until=lambda one: len(one["timeline"]) == 2))
    assert len(value["timeline"]) == 2
    assert script.waits == [0.5]
