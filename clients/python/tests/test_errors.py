"""Every refusal is an error that can be caught by its code."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import httpx
import pytest
from scripted import DEEP, Run, Script, answer, problem

from settlement_service import (
    ApiError,
    Intent,
    RetryPolicy,
    SettlementServiceError,
    WaitTimeoutError,
    WebhookVerificationError,
    certificates,
    errors,
    models,
)


def test_every_code_of_the_document_has_a_class() -> None:
    assert set(errors.CLASS_OF_CODE) == set(get_args(models.ErrorCode))


def test_an_error_has_its_code_and_the_request_id_and_says_them(run: Run) -> None:
    with pytest.raises(errors.StateConflictError) as caught:
        run(
            Script([problem(409, "state_conflict", current_state="paid")]),
            lambda client: client.settlements.cancel("s"),
        )
    error = caught.value
    assert (error.status, error.code, error.current_state, error.request_id) == (409, "state_conflict", "paid", "req-1")
    assert "state_conflict" in str(error)
    assert "req-1" in str(error)


@pytest.mark.parametrize(
    ("code", "extras", "name", "value"),
    [
        ("scope_insufficient", {"required_scope": "settle"}, "required_scope", "settle"),
        ("idempotency_key_reused", {"mismatch": ["amount"]}, "mismatch", ["amount"]),
        ("launch_gates_closed", {"gates": [{"gate": "g", "reason": "r"}]}, "gates", [{"gate": "g", "reason": "r"}]),
        ("quota_exceeded", {"quota": "wallets"}, "quota", "wallets"),
        ("not_found", {"field": "quote_id"}, "field", "quote_id"),
        ("not_found", {}, "field", None),
        ("state_conflict", {"current_state": "s", "replay_id": "r"}, "replay_id", "r"),
        ("state_conflict", {"current_state": "s", "verification_id": "v"}, "verification_id", "v"),
        ("state_conflict", {"current_state": "s"}, "rotated_to", None),
    ],
)
def test_the_extras_of_a_code_are_typed(run: Run, code: str, extras: dict[str, Any], name: str, value: object) -> None:
    with pytest.raises(errors.CLASS_OF_CODE[code]) as caught:
        run(Script([problem(403, code, **extras)]), lambda client: client.settlements.get("s"))
    assert getattr(caught.value, name) == value


def test_every_extra_of_the_document_is_one_of_its_class() -> None:
    common = get_type_hints(models.Problem)
    extended = [getattr(models, name) for name in dir(models) if name.endswith("Problem") and name != "Problem"]
    hints = [get_type_hints(one) for one in extended]
    extras = {(get_args(one["code"])[0], name) for one in hints for name in one if name not in common}
    assert extras == {(code, name) for code, name in extras if hasattr(errors.CLASS_OF_CODE[code], name)}


def test_a_422_lists_every_fault(run: Run) -> None:
    faults = [
        {"loc": ["body", "amount"], "msg": "Input should be a string", "type": "string_type"},
        {"loc": ["header", "Idempotency-Key"], "msg": "too short", "type": "string_too_short"},
    ]
    with pytest.raises(errors.ValidationFailedError) as caught:
        run(Script([answer(422, {"detail": faults})]), lambda client: client.settlements.get("s"))
    assert caught.value.errors == faults
    assert "body.amount: Input should be a string; header.Idempotency-Key: too short" in str(caught.value)


def test_a_code_that_is_not_known_yet_is_an_error_too(run: Run) -> None:
    with pytest.raises(ApiError) as caught:
        run(Script([problem(418, "is_a_teapot")]), lambda client: client.settlements.get("s"))
    assert type(caught.value) is ApiError
    assert caught.value.code == "is_a_teapot"


@pytest.mark.parametrize(
    "reply",
    [
        httpx.Response(404, text="<html>"),
        httpx.Response(200, text="<html>"),
        httpx.Response(200, text=""),
        answer(404, {"status": 404, "request_id": "r"}),
        answer(404, {"code": "not_found", "request_id": "r"}),
        answer(404, {"code": "not_found", "status": 404}),
        answer(404, {"detail": []}),
        answer(422, {"detail": "Unprocessable"}),
        answer(422, {"detail": ["amount is not valid"]}),
        answer(422, {"detail": [{"msg": "not valid"}]}),
        answer(422, {"detail": [{"loc": "amount", "msg": "not valid"}]}),
    ],
)
def test_what_another_program_answered_is_told_apart(run: Run, reply: httpx.Response) -> None:
    with pytest.raises(errors.UnexpectedAnswerError):
        run(Script([reply]), lambda client: client.settlements.get("s"))


@pytest.mark.parametrize("body", [b'"ok"', b"null", b"1"])
def test_a_success_that_is_neither_an_object_nor_a_list_is_told_apart(run: Run, body: bytes) -> None:
    with pytest.raises(errors.UnexpectedAnswerError) as caught:
        run(Script([httpx.Response(202, content=body)]), lambda client: client.settlements.create(amount="250.00"))
    assert caught.value.maybe_done


@pytest.mark.parametrize("status", [200, 404, 422, 502])
def test_an_answer_that_is_nested_deeper_than_python_reads_is_told_apart(run: Run, status: int) -> None:
    with pytest.raises(errors.UnexpectedAnswerError) as caught:
        run(
            Script([httpx.Response(status, content=DEEP)]),
            lambda client: client.settlements.create(amount="250.00"),
            RetryPolicy(attempts_max=1),
        )
    assert caught.value.maybe_done
    assert caught.value.intent


INTENT = Intent("POST", "/v2/settle", "order-1042-settle", "{}")
NO_ANSWER = errors.ConnectionFailedError("no answer", maybe_done=True, intent=INTENT)


@pytest.mark.parametrize("again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy])  # noqa: S301
@pytest.mark.parametrize(
    "error",
    [
        NO_ANSWER,
        WaitTimeoutError("too late", {"status": "accepted"}),
        WebhookVerificationError("invalid_body"),
        certificates.CertificateInvalidError("id", "another one"),
    ],
)
def test_an_error_reaches_another_process_as_it_is(
    again: Callable[[SettlementServiceError], SettlementServiceError], error: SettlementServiceError
) -> None:
    read = again(error)
    assert (type(read), str(read), vars(read)) == (type(error), str(error), vars(error))


def test_a_refusal_reaches_another_process_with_its_extras(run: Run) -> None:
    with pytest.raises(errors.QuotaExceededError) as caught:
        run(Script([problem(429, "quota_exceeded", quota="wallets")]), lambda client: client.wallets.get("w"))
    read = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert (read.quota, read.code, str(read)) == ("wallets", "quota_exceeded", str(caught.value))
