"""What can go wrong. Every error of this package is a `SettlementServiceError`.

The service answers a refusal with a `code`, and each code has a class: catch `StateConflictError`, not a status. A code
that this client does not know yet is an `ApiError` with that `code`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ._request import Answer, Intent, parsed


class SettlementServiceError(Exception):
    """The base of every error of this package."""

    def __reduce__(self) -> tuple[Any, ...]:
        # By default `__init__` is called with the message alone: no process could read another one's error.
        return Exception.__new__, (type(self), *self.args), self.__dict__


class CallFailedError(SettlementServiceError):
    """A call ended without the answer that it is for, although it was sent again where that is safe."""

    def __init__(self, message: str, *, maybe_done: bool, intent: Intent | None) -> None:
        super().__init__(message)
        #: Whether the service may have carried out an attempt of this call, not only the one that failed last. Of an
        #: earlier call with the same intent it says nothing: what that one did is not undone by this error.
        self.maybe_done = maybe_done
        #: The creation that failed. Until you know whether it was carried out, create with this intent again, and never
        #: with a new one: the service carries it out once.
        self.intent = intent


class ConnectionFailedError(CallFailedError):
    """There was no answer."""


class WaitTimeoutError(SettlementServiceError):
    """The settlement or transfer has not reached a wanted status in time. `last` is how it was read last."""

    def __init__(self, message: str, last: Any) -> None:
        super().__init__(message)
        self.last = last


class UnexpectedAnswerError(CallFailedError):
    """The answer is not one of the service: a proxy's page, for example."""

    def __init__(self, answer: Answer, *, maybe_done: bool, intent: Intent | None) -> None:
        message = f"The answer {answer.status} is not one of the settlement service."
        super().__init__(message, maybe_done=maybe_done, intent=intent)
        self.status = answer.status
        self.content = answer.content


class ApiError(CallFailedError):
    """The service refused the last attempt."""

    code_of_class: ClassVar[str | None] = None

    def __init__(self, answer: Answer, problem: Mapping[str, Any], *, maybe_done: bool, intent: Intent | None) -> None:
        self.status = answer.status
        self.problem = problem
        self.code: str = str(problem.get("code", ""))
        self.title: str = str(problem.get("title", ""))
        self.detail: str = str(problem.get("detail", ""))
        #: Quote it when you report a fault.
        self.request_id: str | None = answer.headers.get("x-request-id")
        #: In how many seconds the service wants the next attempt, if it says so.
        self.retry_after = answer.retry_after
        super().__init__(self._sentence(), maybe_done=maybe_done, intent=intent)

    def _sentence(self) -> str:
        return f"{self.status} {self.code}: {self.detail} (request {self.request_id})"

    def _optional(self, name: str) -> str | None:
        value: str | None = self.problem.get(name)
        return value


class ValidationFailedError(ApiError):
    """422: the request is invalid. `errors` lists every fault, each with `loc`, `msg` and `type`."""

    @property
    def errors(self) -> Sequence[Mapping[str, Any]]:
        detail: Sequence[Mapping[str, Any]] = self.problem["detail"]
        return detail

    def _sentence(self) -> str:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in self.errors)
        return f"422: {faults} (request {self.request_id})"


class RequestMalformedError(ApiError):
    """400: the bytes are not one HTTP request. The connection is closed."""

    code_of_class = "request_malformed"


class CredentialMissingError(ApiError):
    """401: the operation needs a credential."""

    code_of_class = "credential_missing"


class CredentialAmbiguousError(ApiError):
    """401: more than one credential was sent."""

    code_of_class = "credential_ambiguous"


class CredentialInvalidError(ApiError):
    """401: the key or session is unknown, expired, revoked, rotated, or of another environment."""

    code_of_class = "credential_invalid"


class ScopeInsufficientError(ApiError):
    """403: the key's scope does not cover the operation."""

    code_of_class = "scope_insufficient"

    @property
    def required_scope(self) -> str:
        return str(self.problem["required_scope"])


class OrganizationMismatchError(ApiError):
    """403: `org_id` is not the key's organization."""

    code_of_class = "organization_mismatch"


class OrganizationSuspendedError(ApiError):
    """403: the operator of the service suspended the organization; reads are answered."""

    code_of_class = "organization_suspended"


class NotFoundError(ApiError):
    """404: the organization has no such object."""

    code_of_class = "not_found"

    @property
    def field(self) -> str | None:
        """The field of the body that has the id; `None` if the path has it."""
        return self._optional("field")


class MethodNotAllowedError(ApiError):
    """405."""

    code_of_class = "method_not_allowed"


class IdempotencyKeyReusedError(ApiError):
    """409: the key belongs to another creation. `mismatch` names the fields that differ."""

    code_of_class = "idempotency_key_reused"

    @property
    def mismatch(self) -> Sequence[str]:
        return list(self.problem.get("mismatch", []))


class StateConflictError(ApiError):
    """409: the object's state forbids it."""

    code_of_class = "state_conflict"

    @property
    def current_state(self) -> str:
        return str(self.problem["current_state"])

    @property
    def replay_id(self) -> str | None:
        """The replay of the subscription that runs."""
        return self._optional("replay_id")

    @property
    def verification_id(self) -> str | None:
        """The verification of the recipient that is open."""
        return self._optional("verification_id")

    @property
    def rotated_to(self) -> str | None:
        """The key that took the place of this one."""
        return self._optional("rotated_to")


class LastFullKeyError(ApiError):
    """409: it is the organization's last active key with scope `full`."""

    code_of_class = "last_full_key"


class ProviderEventConflictError(ApiError):
    """409: a provider's event was received before with other content."""

    code_of_class = "provider_event_conflict"


class RequestTimeoutError(ApiError):
    """408: the request did not arrive completely in time."""

    code_of_class = "request_timeout"


class PayloadTooLargeError(ApiError):
    """413."""

    code_of_class = "payload_too_large"


class UnsupportedMediaTypeError(ApiError):
    """415."""

    code_of_class = "unsupported_media_type"


class HeadersTooLargeError(ApiError):
    """431: the address and the headers are larger than the server reads. The connection is closed."""

    code_of_class = "headers_too_large"


class RateLimitedError(ApiError):
    """429: too many requests. `retry_after` says in how many seconds the next one is allowed."""

    code_of_class = "rate_limited"


class QuotaExceededError(ApiError):
    """429: a quota is used up; `quota` names it. `retry_after` says when it is free again, if known."""

    code_of_class = "quota_exceeded"

    @property
    def quota(self) -> str:
        return str(self.problem["quota"])


class RemoteEnvironmentError(ApiError):
    """502: bank linking is simulated in the local sandbox only."""

    code_of_class = "remote_environment"


class LaunchGatesClosedError(ApiError):
    """503: value operations are closed in this environment. `gates` lists every closed gate."""

    code_of_class = "launch_gates_closed"

    @property
    def gates(self) -> Sequence[Mapping[str, Any]]:
        return list(self.problem.get("gates", []))


class LocalSandboxOnlyError(ApiError):
    """503: the operation is a simulation."""

    code_of_class = "local_sandbox_only"


class ProviderNotConfiguredError(ApiError):
    """503: the provider has no credentials in this environment."""

    code_of_class = "provider_not_configured"


class TemporarilyUnavailableError(ApiError):
    """503: the outcome could not be confirmed. Create with the same intent again."""

    code_of_class = "temporarily_unavailable"


class SignatureInvalidError(ApiError):
    """401: a provider's event is not signed as it must be."""

    code_of_class = "signature_invalid"


class InternalError(ApiError):
    """500: something failed in the service. Quote `request_id` when you report it."""

    code_of_class = "internal_error"


CLASS_OF_CODE: Mapping[str, type[ApiError]] = {
    one.code_of_class: one for one in ApiError.__subclasses__() if one.code_of_class is not None
}


def error_of(answer: Answer, *, maybe_done: bool, intent: Intent | None) -> ApiError | UnexpectedAnswerError:
    """The error that an answer with a status from 300 stands for."""
    problem = problem_of(answer)
    if problem is None:
        return UnexpectedAnswerError(answer, maybe_done=maybe_done, intent=intent)
    is_validation = "code" not in problem
    kind = ValidationFailedError if is_validation else CLASS_OF_CODE.get(str(problem["code"]), ApiError)
    return kind(answer, problem, maybe_done=maybe_done, intent=intent)


def problem_of(answer: Answer) -> Mapping[str, Any] | None:
    """The body of a refusal, or `None` when something else answered."""
    try:
        body = parsed(answer.content)
    except ValueError:
        return None
    if not isinstance(body, dict):
        return None
    detail = body.get("detail")
    is_validation = answer.status == 422 and isinstance(detail, list) and all(map(_is_fault, detail))
    # A proxy may answer in JSON too, and with a `code` of its own.
    is_problem = isinstance(body.get("code"), str) and "status" in body and "request_id" in body
    return body if is_validation or is_problem else None


def _is_fault(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("loc"), list) and "msg" in value
