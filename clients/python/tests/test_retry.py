"""A request is sent again where that is safe, and only there."""

from __future__ import annotations

import math
import socket
import time
import traceback
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import anyio
import httpx
import pytest
from anyio.abc import SocketAttribute, SocketStream
from scripted import BASE, KEY, Run, Script, answer, problem

from settlement_service import ApiError, AsyncClient, Client, ConnectionFailedError, RetryPolicy, errors
from settlement_service._request import Answer, Call
from settlement_service.retry import Address, NoAnswer, Pause, Send, exchange

FIELDS = {"corridor": "US-JM", "amount": "250.00", "recipient_id": "r", "payment_method": "wire", "payout_rail": "x"}
UNAVAILABLE = "temporarily_unavailable"
REFUSED = httpx.ConnectError("refused")
BROKEN = [httpx.ReadError("reset"), httpx.RemoteProtocolError("closed"), httpx.ReadTimeout("late")]
ONCE = RetryPolicy(attempts_max=1)


@pytest.mark.parametrize("fault", [REFUSED, *BROKEN], ids=lambda fault: type(fault).__name__)
def test_a_keyed_creation_is_repeated_with_the_same_key_and_the_same_bytes(run: Run, fault: Exception) -> None:
    script = Script([fault, fault, answer(202, {"settlement_id": "stl_1"})])
    assert run(script, lambda client: client.settlements.create(**FIELDS))["settlement_id"] == "stl_1"
    sent = {(request.headers["idempotency-key"], request.content) for request in script.requests}
    assert len(script.requests) == 3
    assert len(sent) == 1


@pytest.mark.parametrize("fault", BROKEN, ids=lambda fault: type(fault).__name__)
def test_a_command_without_a_key_is_not_repeated_when_it_may_have_been_carried_out(run: Run, fault: Exception) -> None:
    script = Script([fault])
    with pytest.raises(ConnectionFailedError) as caught:
        run(script, lambda client: client.webhooks.send_test_event("w"))
    assert caught.value.maybe_done
    assert caught.value.intent is None
    assert "earlier attempt" not in str(caught.value)


@pytest.mark.parametrize(
    "nothing_done",
    [
        REFUSED,
        httpx.PoolTimeout("full"),
        problem(429, "rate_limited", {"Retry-After": "1"}),
        httpx.Response(429, text="<html>"),
    ],
)
def test_a_command_without_a_key_is_repeated_when_nothing_was_carried_out(run: Run, nothing_done: object) -> None:
    script = Script([nothing_done, answer(202, {"webhook_id": "w"})])
    assert run(script, lambda client: client.webhooks.send_test_event("w")) == {"webhook_id": "w"}


@pytest.mark.parametrize(
    "act",
    [
        lambda client: client.settlements.get("stl_1"),
        lambda client: client.settlements.cancel("stl_1"),
        lambda client: client.recipients.deactivate("r"),
        lambda client: client.api_keys.revoke("k", descendants=True),
        lambda client: client.verifications.complete("v", status="verified"),
        lambda client: client.wallets.create(name="w", signers=[], threshold=1),
        lambda client: client.webhooks.replay("w", since="2026-11-21T08:00:00Z"),
        lambda client: client.api_keys.create("o", name="k", scope="read"),
        lambda client: client.estimates.create(corridor="US-JM", amount="1", payment_method="wire"),
    ],
)
def test_reads_keyed_creations_and_harmless_commands_pass_a_503(run: Run, act: object) -> None:
    script = Script([problem(503, UNAVAILABLE, {"Retry-After": "2"}), answer(200, {})])
    assert run(script, act) == {}
    assert 2 <= script.waits[0] <= 2.1


@pytest.mark.parametrize("code", ["launch_gates_closed", "local_sandbox_only", "provider_not_configured"])
def test_a_503_that_does_not_pass_by_waiting_is_raised_at_once(run: Run, code: str) -> None:
    script = Script([problem(503, code)])
    with pytest.raises(errors.CLASS_OF_CODE[code]):
        run(script, lambda client: client.settlements.create(**FIELDS))


def test_a_quota_that_is_used_up_is_raised_at_once(run: Run) -> None:
    script = Script([problem(429, "quota_exceeded", quota="recipients")])
    with pytest.raises(errors.QuotaExceededError):
        run(script, lambda client: client.settlements.create(**FIELDS))
    assert script.waits == []


@pytest.mark.parametrize("text", ["<html>", '{"code": "NO_UPSTREAM", "message": ""}'])
@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_proxy_that_cannot_reach_the_service_is_waited_for(run: Run, status: int, text: str) -> None:
    script = Script([httpx.Response(status, text=text), answer(200, {})])
    assert run(script, lambda client: client.settlements.get("stl_1")) == {}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 500])
def test_every_other_refusal_is_raised_at_once(run: Run, status: int) -> None:
    script = Script([problem(status, "internal_error")])
    with pytest.raises(ApiError):
        run(script, lambda client: client.settlements.get("stl_1"))
    assert script.waits == []


def test_a_longer_retry_after_than_the_limit_is_not_waited_for(run: Run) -> None:
    script = Script([problem(429, "rate_limited", {"Retry-After": "31"})])
    with pytest.raises(errors.RateLimitedError) as caught:
        run(script, lambda client: client.settlements.get("stl_1"))
    assert caught.value.retry_after == 31
    assert script.waits == []


def test_a_retry_after_of_exactly_the_limit_is_waited_for(run: Run) -> None:
    script = Script([problem(429, "rate_limited", {"Retry-After": "30"}), answer(200, {})])
    assert run(script, lambda client: client.settlements.get("stl_1")) == {}
    assert len(script.waits) == 1
    assert 30 <= script.waits[0] < 31


def test_waits_double_up_to_a_limit_and_end_with_the_last_attempt(run: Run) -> None:
    script = Script([problem(503, UNAVAILABLE), *[REFUSED] * 9])
    with pytest.raises(ConnectionFailedError) as caught:
        run(script, lambda client: client.settlements.create(**FIELDS), RetryPolicy(attempts_max=10))
    assert caught.value.maybe_done
    expected = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert len(script.waits) == len(expected)
    for wait, most in zip(script.waits, expected, strict=True):
        assert most / 2 <= wait <= most


@pytest.mark.parametrize("first", [BROKEN[0], problem(503, UNAVAILABLE), httpx.Response(502), httpx.Response(504)])
def test_what_may_have_been_done_stays_so_after_connections_that_are_refused(run: Run, first: object) -> None:
    script = Script([first, REFUSED, REFUSED])
    with pytest.raises(ConnectionFailedError, match="may have carried out an earlier attempt") as caught:
        run(script, lambda client: client.settlements.create(**FIELDS), RetryPolicy(attempts_max=3))
    assert caught.value.maybe_done
    assert caught.value.intent


LATER = problem(429, "rate_limited", {"Retry-After": "31"})


@pytest.mark.parametrize(
    ("replies", "maybe_done"),
    [
        ([REFUSED, REFUSED], False),
        ([problem(429, "rate_limited", {"Retry-After": "0"}), REFUSED], False),
        ([LATER], False),
        ([BROKEN[0], LATER], True),
        ([BROKEN[0], problem(403, "organization_suspended")], True),
        ([problem(403, "organization_suspended")], False),
        ([answer(422, {"detail": []})], False),
        ([problem(503, "launch_gates_closed")], False),
        ([problem(500, "internal_error")], True),
        ([problem(503, "new_one")], True),
        ([httpx.Response(404, text="<html>")], True),
        ([httpx.Response(200, text="<html>")], True),
    ],
)
def test_every_error_says_whether_an_attempt_of_the_call_may_have_been_carried_out(
    run: Run, replies: list[object], maybe_done: bool
) -> None:
    with pytest.raises(errors.CallFailedError) as caught:
        run(
            Script(replies),
            lambda client: client.settlements.create(**FIELDS),
            RetryPolicy(attempts_max=len(replies)),
        )
    assert caught.value.maybe_done == maybe_done
    assert caught.value.intent


@pytest.mark.parametrize("fault", [REFUSED, httpx.ConnectError("Name or service not known"), BROKEN[0]])
def test_an_address_that_has_never_answered_is_named_after_three_attempts(run: Run, fault: Exception) -> None:
    script = Script([fault] * 3)
    with pytest.raises(ConnectionFailedError, match=f"GET {BASE}/v2/settle/stl_1: {type(fault).__name__} {fault}"):
        run(script, lambda client: client.settlements.get("stl_1"))
    assert sum(script.waits) <= 0.3


@pytest.mark.parametrize("style", [Client, AsyncClient])
def test_an_address_that_opens_no_connection_is_named_once_the_connect_timeout_is_over(style: Any) -> None:
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        # Nobody accepts: two connections fill the queue, and the next one is neither opened nor refused.
        listener.listen(1)
        for filling in (first, second):
            filling.connect(listener.getsockname())
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        client = style(base, "sk_local_unit", retry=RetryPolicy(connect_timeout=0.2))
        get = client.settlements.get
        read = get if style is Client else partial(anyio.run, get)
        started = time.monotonic()
        with pytest.raises(ConnectionFailedError, match=f"GET {base}/v2/settle/stl_1: ConnectTimeout") as caught:
            read("stl_1")
        assert time.monotonic() - started < 2
        assert not caught.value.maybe_done


def test_the_connect_timeout_is_for_all_attempts_together_until_something_has_answered() -> None:
    now = [100.0]
    call: Call[Any] = Call("GET", "/v2/settle/stl_1", repeatable=True)
    steps = exchange(call, RetryPolicy(), Address(BASE), lambda: now[0], lambda: 1.0)
    limits = []
    refused = NoAnswer("refused", maybe_done=False)
    outcomes: list[tuple[int, Answer | NoAnswer | None]] = [(4, refused), (5, Answer(503, {}, b"")), (6, None)]
    for seconds, outcome in outcomes:
        step = next(steps)
        assert isinstance(step, Send)
        limits.append((step.timeout, step.connect_timeout))
        if outcome:
            now[0] += seconds
            assert isinstance(steps.send(outcome), Pause)
    assert limits == [(20, 10), (20, 6), (20, 10)]


def test_clients_with_the_same_retry_after_do_not_all_come_back_at_once() -> None:
    call: Call[Any] = Call("GET", "/v2/settle/stl_1", repeatable=True)
    waits = []
    for drawn in (0.0, 1.0):
        steps = exchange(call, RetryPolicy(wait_first=0.5), Address(BASE), lambda: 0.0, partial(float, drawn))
        next(steps)
        waits.append(steps.send(Answer(503, {"retry-after": "2"}, b"")))
    assert waits == [Pause(2.0), Pause(2.5)]


def test_an_attempt_has_no_more_time_for_its_connection_than_for_its_answer(run: Run) -> None:
    script = Script([answer(200, {})])
    run(script, lambda client: client.settlements.get("stl_1"), RetryPolicy(attempt_timeout=1, connect_timeout=5))
    assert script.requests[0].extensions["timeout"]["connect"] == pytest.approx(1, abs=0.5)


def test_what_http_does_not_allow_is_raised_at_once_without_its_text(run: Run) -> None:
    script = Script([httpx.LocalProtocolError("Illegal header value b'sk_local_secret'")])
    with pytest.raises(ConnectionFailedError, match="LocalProtocolError") as caught:
        run(script, lambda client: client.settlements.get("stl_1"))
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.maybe_done
    assert script.waits == []


def test_an_answer_that_trickles_ends_with_its_attempt() -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(4):
            time.sleep(0.03)
            yield b" "

    async def async_parts() -> AsyncIterator[bytes]:
        for _ in range(20):
            await anyio.sleep(0.03)
            yield b" "

    once = RetryPolicy(attempt_timeout=0.05, attempts_max=1)
    trickling = httpx.MockTransport(lambda _request: httpx.Response(200, content=parts()))
    with pytest.raises(ConnectionFailedError, match="took too long"):
        Client(BASE, KEY, retry=once, http=httpx.Client(transport=trickling)).settlements.get("stl_1")
    trickling = httpx.MockTransport(lambda _request: httpx.Response(200, content=async_parts()))
    with pytest.raises(ConnectionFailedError, match="took too long"):
        anyio.run(
            AsyncClient(BASE, KEY, retry=once, http=httpx.AsyncClient(transport=trickling)).settlements.get, "stl_1"
        )


def test_headers_that_trickle_end_with_their_attempt() -> None:
    async def trickle(stream: SocketStream) -> None:
        async with stream:
            await stream.send(b"HTTP/1.1 200 OK\r\n")
            for _ in range(60):
                await anyio.sleep(0.05)
                await stream.send(b"X-Slow: 1\r\n")

    async def main() -> None:
        async with (
            await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(listener.serve, trickle)
            base = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"  # noqa: S610
            once = RetryPolicy(attempt_timeout=0.3, attempts_max=1)
            start = time.monotonic()
            async with AsyncClient(base, KEY, retry=once) as client:
                with pytest.raises(ConnectionFailedError, match="took too long") as caught:
                    await client.settlements.get("stl_1")
            assert time.monotonic() - start < 2
            assert caught.value.maybe_done
            tasks.cancel_scope.cancel()

    anyio.run(main)


def test_no_attempt_begins_after_the_total_timeout(run: Run) -> None:
    script = Script([REFUSED])
    with pytest.raises(ConnectionFailedError):
        run(script, lambda client: client.settlements.get("stl_1"), RetryPolicy(total_timeout=0.01))
    assert len(script.requests) == 1


def test_a_policy_without_an_end_sets_no_limit(run: Run) -> None:
    policy = RetryPolicy(total_timeout=math.inf, attempt_timeout=math.inf, connect_timeout=math.inf)
    script = Script([answer(200, {"status": "settled"})])
    run(script, lambda client: client.settlements.get("stl_1"), policy)
    assert set(script.requests[0].extensions["timeout"].values()) == {None}


def test_the_error_of_a_creation_has_its_intent_which_is_sent_again_unchanged(run: Run) -> None:
    script = Script([httpx.ReadError("reset"), answer(202, {"settlement_id": "stl_1"})])
    with pytest.raises(ConnectionFailedError) as caught:
        run(script, lambda client: client.settlements.create(**FIELDS), ONCE)
    intent = caught.value.intent
    assert intent is not None
    assert caught.value.maybe_done
    run(script, lambda client: client.settlements.create(intent))
    first, second = script.requests
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert first.content == second.content


def test_a_redirect_is_not_followed(run: Run) -> None:
    script = Script([httpx.Response(302, headers={"Location": "https://elsewhere.example"})])
    with pytest.raises(errors.UnexpectedAnswerError):
        run(script, lambda client: client.settlements.get("stl_1"))
    assert len(script.requests) == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *[("7", 7), ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("", None), ("soon", None), ("-1", None), ("\u00b2", None)],
        ("Thu, 01 Jan 99999999999999999999 00:00:00 GMT", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(text: str, seconds: float | None) -> None:
    assert Answer(503, {"retry-after": text}, b"").retry_after == seconds
