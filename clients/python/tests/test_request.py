"""What is sent, and what is refused before it is sent."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import anyio
import httpx
import pytest
from scripted import BASE, DEEP, KEY, Run, Script, answer

from settlement_service import AsyncConsumerClient, Client, ConnectionFailedError, ConsumerClient, Intent
from settlement_service._request import QueryValue, call_of, encoded, path_of, prepared, query_pairs


def test_the_bytes_of_a_body_do_not_depend_on_the_order_of_its_fields() -> None:
    assert encoded({"b": 1, "a": "é"}) == encoded({"a": "é", "b": 1}) == '{"a":"é","b":1}'.encode()


def test_a_number_that_json_does_not_have_and_a_decimal_are_refused() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        encoded({"amount": float("nan")})
    with pytest.raises(TypeError, match="Money is a string"):
        encoded({"amount": 1j})


def test_moments_are_sent_in_utc_and_need_a_time_zone() -> None:
    moment = datetime(2026, 11, 21, 9, 0, 0, 1, tzinfo=timezone(timedelta(hours=1)))
    assert query_pairs({"created_from": moment}) == [("created_from", "2026-11-21T08:00:00.000001Z")]
    assert encoded({"since": moment}) == b'{"since":"2026-11-21T08:00:00.000Z"}'
    with pytest.raises(ValueError, match="time zone"):
        encoded({"since": datetime(2026, 11, 21)})


def test_filters_are_left_out_repeated_or_put_in_brackets() -> None:
    given: dict[str, QueryValue] = {
        "limit": 5,
        "status": ["a", "b"],
        "metadata": {"k": "v"},
        "reference": None,
        "is_active": True,
    }
    expected = [("limit", "5"), ("status", "a"), ("status", "b"), ("metadata[k]", "v"), ("is_active", "true")]
    assert query_pairs(given) == expected


@pytest.mark.parametrize("given", ["", ".", ".."])
def test_an_id_that_would_lead_to_another_path_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="settlement_id"):
        path_of("/v2/settle/{settlement_id}", settlement_id=given)


def test_an_id_is_escaped() -> None:
    assert path_of("/v2/settle/{settlement_id}", settlement_id="../a?b") == "/v2/settle/..%2Fa%3Fb"


def test_an_intent_is_stored_and_read_unchanged_and_hides_its_body() -> None:
    intent = prepared("/v2/settle", None, {"card_token": "tok_secret"})
    assert Intent.from_json(intent.to_json()) == intent
    assert "tok_secret" not in repr(intent)


@pytest.mark.parametrize(
    "text",
    [
        *["[]", "{}", '{"method":"POST","path":"/x","idempotency_key":"k","body":1}'],
        '{"method":"POST","path":"/x","idempotency_key":"k","body":"","more":""}',
    ],
)
def test_what_is_not_an_intent_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="intent"):
        Intent.from_json(text)


def test_a_stored_text_that_is_nested_deeper_than_python_reads_is_no_intent() -> None:
    with pytest.raises(ValueError, match="nested"):
        Intent.from_json(DEEP.decode())


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/wallets"), ("POST", "/v2/settle/stl_1/cancel"), ("DELETE", "/v2/settle")]
)
def test_an_intent_of_another_operation_is_refused_before_it_is_sent(run: Run, method: str, path: str) -> None:
    intent = replace(prepared(path, None, {}), method=method)
    with pytest.raises(ValueError, match=f"{method} {path}"):
        run(Script([]), lambda client: client.settlements.create(intent))


@pytest.mark.parametrize("key", ["short", "has a space in it", "x" * 129, "x" * 16 + "\n"])
def test_an_invalid_idempotency_key_is_refused_before_it_is_sent(key: str) -> None:
    with pytest.raises(ValueError, match="16 to 128"):
        prepared("/v2/settle", key, {})


def test_every_key_that_a_settlement_takes_is_sent(run: Run) -> None:
    script = Script([answer(202, {})])
    key = "_order-2026-11-22-0001"
    run(script, lambda client: client.settlements.create(idempotency_key=key, amount="250.00"))
    assert script.requests[0].headers["idempotency-key"] == key


@pytest.mark.parametrize("path", ["@evil.example/v2/settle", ".evil.example/v2/settle", "v2/settle", ""])
def test_a_path_that_would_lead_to_another_host_is_refused_before_the_key_is_sent(run: Run, path: str) -> None:
    script = Script([])
    intent = replace(prepared("/v2/settle", None, {}), path=path)
    for act in (lambda client: client.send(intent), lambda client: client.request("GET", path)):
        with pytest.raises(ValueError, match="begins with /"):
            run(script, act)
    assert script.requests == []


def test_a_given_key_is_used(run: Run) -> None:
    script = Script([answer(201, {})])
    run(script, lambda client: client.recipients.create(idempotency_key="order-2026-11-22-0001", name="x"))
    assert script.requests[0].headers["idempotency-key"] == "order-2026-11-22-0001"


@pytest.mark.parametrize(
    "url",
    [
        *["api.example.com", "ftp://api.example.com", "https://a?b=c", "https://a#b", "https://user:secret@a"],
        *["http://api.example.com", "http://10.0.0.1:3000", "http://[fd00::1]"],
    ],
)
def test_an_address_that_cannot_be_right_or_would_show_the_key_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        Client(url, KEY)


def test_a_key_is_never_shown_and_a_broken_one_is_refused() -> None:
    client = Client(BASE, KEY)
    shown = repr(client) + repr(client._transport.settings)
    assert KEY not in shown
    for broken in ("sk_local_x\r\nX-Other: 1", f"{KEY}\n", ""):
        with pytest.raises(ValueError, match="credential"):
            Client(BASE, broken)


def test_a_consumer_that_has_signed_out_sends_no_session() -> None:
    script = Script([answer(204, None), answer(200, {})] * 2)
    transport = httpx.MockTransport(script.handle)
    consumer = ConsumerClient(BASE, "cst_unit", http=httpx.Client(transport=transport))
    consumer.logout()
    consumer.me()

    async def sign_out() -> None:
        asynchronous = AsyncConsumerClient(BASE, "cst_unit", http=httpx.AsyncClient(transport=transport))
        await asynchronous.logout()
        await asynchronous.me()

    anyio.run(sign_out)
    sent = [request.headers.get("authorization") for request in script.requests]
    assert sent == ["Bearer cst_unit", None] * 2


def test_a_request_has_the_key_and_the_clients_name(run: Run) -> None:
    script = Script([answer(200, {})])
    run(script, lambda client: client.settlements.get("stl_1"))
    request = script.requests[0]
    assert str(request.url) == f"{BASE}/v2/settle/stl_1"
    assert request.headers["x-api-key"] == KEY
    assert request.headers["user-agent"].startswith("settlement-service-python/")


def test_the_last_slash_of_an_address_is_left_out() -> None:
    settings = Client(f"{BASE}/", KEY)._transport.settings
    assert settings.request_of(call_of("GET", "/v1/me"))[1] == f"{BASE}/v1/me"


def test_operations_without_a_method_can_be_requested(run: Run) -> None:
    script = Script([answer(200, {"status": "ok"}), answer(201, {})])
    assert run(script, lambda client: client.request("GET", "/health/live")) == {"status": "ok"}
    key = "order-2026-11-22-0001"
    run(script, lambda client: client.request("POST", "/v1/new", body={"a": 1}, idempotency_key=key))
    assert script.requests[1].headers["idempotency-key"] == key


def test_a_request_with_a_key_has_its_query(run: Run) -> None:
    script = Script([answer(201, {})])
    key = "order-2026-11-22-0001"
    run(script, lambda client: client.request("POST", "/v1/new", query={"now": True}, idempotency_key=key))
    (request,) = script.requests
    assert (request.url.raw_path, request.headers["idempotency-key"]) == (b"/v1/new?now=true", key)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "GET"])
def test_a_key_of_anything_but_a_post_is_refused_before_it_is_sent(run: Run, method: str) -> None:
    script = Script([])
    with pytest.raises(ValueError, match="Only a POST"):
        run(
            script,
            lambda client: client.request(method, "/v1/webhooks/w", idempotency_key="order-2026-11-22-0001"),
        )
    assert script.requests == []


def test_a_command_by_request_is_not_repeated_without_a_key_and_an_empty_key_is_refused(run: Run) -> None:
    script = Script([httpx.ReadError("reset")])
    with pytest.raises(ConnectionFailedError):
        run(script, lambda client: client.request("POST", "/v1/new", body={"a": 1}))
    with pytest.raises(ValueError, match="16 to 128"):
        run(script, lambda client: client.request("POST", "/v1/new", body={"a": 1}, idempotency_key=""))
    assert len(script.requests) == 1
