"""The four clients: for partners and for consumers, blocking and asynchronous."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any

import httpx
from typing_extensions import Self, Unpack

from . import models, resources
from ._request import CREATES, Call, Intent, QueryValue, encoded, prepared, sending
from .groups import (
    AsyncCertificates,
    AsyncSettlements,
    AsyncTransfers,
    Certificates,
    Settlements,
    Transfers,
)
from .retry import RetryPolicy
from .transport import AsyncTransport, OnRetry, Settings, Transport

API_KEY = "X-API-Key"
SESSION = "Authorization"


class _Blocking:
    """What the two blocking clients share."""

    def __init__(
        self,
        base_url: str,
        *,
        retry: RetryPolicy | None = None,
        on_retry: OnRetry | None = None,
        http: httpx.Client | None = None,
    ) -> None:
        self._transport = Transport(Settings(base_url, None, retry or RetryPolicy(), on_retry), http)

    def send(self, intent: Intent) -> Any:
        """Carries out an intent of any operation, such as that of an error. The service carries it out once."""
        return self._transport.run(sending(intent))

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, QueryValue] | None = None,
        body: Mapping[str, object] | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """An operation that has no method here. It is repeated if it is a GET or has an idempotency key.

        Give a key only where the document has the header: any other command is done again when it is repeated.
        """
        return self._transport.run(_call(method, path, query, body, idempotency_key))

    def close(self) -> None:
        """Closes the connections."""
        self._transport.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._transport.settings.base_url!r})"


class _Asynchronous:
    """What the two asynchronous clients share."""

    def __init__(
        self,
        base_url: str,
        *,
        retry: RetryPolicy | None = None,
        on_retry: OnRetry | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._transport = AsyncTransport(Settings(base_url, None, retry or RetryPolicy(), on_retry), http)

    async def send(self, intent: Intent) -> Any:
        """Carries out an intent of any operation, such as that of an error. The service carries it out once."""
        return await self._transport.run(sending(intent))

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, QueryValue] | None = None,
        body: Mapping[str, object] | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """An operation that has no method here. It is repeated if it is a GET or has an idempotency key.

        Give a key only where the document has the header: any other command is done again when it is repeated.
        """
        return await self._transport.run(_call(method, path, query, body, idempotency_key))

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._transport.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._transport.settings.base_url!r})"


class Client(_Blocking):
    """A partner's client. One instance serves a whole process, its threads included.

    Without `api_key` it can only create an organization, whose answer has the first key.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        retry: RetryPolicy | None = None,
        on_retry: OnRetry | None = None,
        http: httpx.Client | None = None,
    ) -> None:
        super().__init__(base_url, retry=retry, on_retry=on_retry, http=http)
        transport = self._transport
        if api_key is not None:
            transport.settings.authorize(API_KEY, api_key)
        self.settlements = Settlements(transport)
        self.recipients = resources.Recipients(transport)
        self.verifications = resources.Verifications(transport)
        self.estimates = resources.Estimates(transport)
        self.banklink = resources.Banklink(transport)
        self.certificates = Certificates(transport)
        self.events = resources.Events(transport)
        self.webhooks = resources.Webhooks(transport)
        self.organizations = resources.Organizations(transport)
        self.api_keys = resources.ApiKeys(transport)
        self.wallets = resources.Wallets(transport)
        self.caribbean = resources.Caribbean(transport)
        self.service = resources.Service(transport)
        self.sandbox = resources.Sandbox(transport)


class AsyncClient(_Asynchronous):
    """A partner's client. One instance serves a whole event loop.

    Without `api_key` it can only create an organization, whose answer has the first key.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        retry: RetryPolicy | None = None,
        on_retry: OnRetry | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        super().__init__(base_url, retry=retry, on_retry=on_retry, http=http)
        transport = self._transport
        if api_key is not None:
            transport.settings.authorize(API_KEY, api_key)
        self.settlements = AsyncSettlements(transport)
        self.recipients = resources.AsyncRecipients(transport)
        self.verifications = resources.AsyncVerifications(transport)
        self.estimates = resources.AsyncEstimates(transport)
        self.banklink = resources.AsyncBanklink(transport)
        self.certificates = AsyncCertificates(transport)
        self.events = resources.AsyncEvents(transport)
        self.webhooks = resources.AsyncWebhooks(transport)
        self.organizations = resources.AsyncOrganizations(transport)
        self.api_keys = resources.AsyncApiKeys(transport)
        self.wallets = resources.AsyncWallets(transport)
        self.caribbean = resources.AsyncCaribbean(transport)
        self.service = resources.AsyncService(transport)
        self.sandbox = resources.AsyncSandbox(transport)


class ConsumerClient(_Blocking):
    """One consumer's client. `verify_otp` signs in; `access_token` continues a session."""

    def __init__(
        self,
        base_url: str,
        access_token: str | None = None,
        *,
        retry: RetryPolicy | None = None,
        on_retry: OnRetry | None = None,
        http: httpx.Client | None = None,
    ) -> None:
        super().__init__(base_url, retry=retry, on_retry=on_retry, http=http)
        transport = self._transport
        if access_token is not None:
            transport.settings.authorize(SESSION, f"Bearer {access_token}")
        self._account = resources.ConsumerAccount(transport)
        self.recipients = resources.ConsumerRecipients(transport)
        self.quotes = resources.Quotes(transport)
        self.transfers = Transfers(transport)
        self.banklink = resources.ConsumerBanklink(transport)

    def request_otp(self, **fields: Unpack[models.RequestOTPBody]) -> models.OTPChallengeResponse:
        """Sends a one-time code to an email address or a phone."""
        return self._account.request_otp(**fields)

    def verify_otp(self, **fields: Unpack[models.VerifyOTPBody]) -> models.SessionResponse:
        """Signs in: every later request of this client is one of the consumer."""
        session = self._account.verify_otp(**fields)
        self._transport.settings.authorize(SESSION, f"Bearer {session['access_token']}")
        return session

    def me(self) -> models.MeResponse:
        """The consumer who is signed in."""
        return self._account.me()

    def logout(self) -> None:
        """Ends the session."""
        self._account.logout()
        self._transport.settings.credential = None


class AsyncConsumerClient(_Asynchronous):
    """One consumer's client. `verify_otp` signs in; `access_token` continues a session."""

    def __init__(
        self,
        base_url: str,
        access_token: str | None = None,
        *,
        retry: RetryPolicy | None = None,
        on_retry: OnRetry | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        super().__init__(base_url, retry=retry, on_retry=on_retry, http=http)
        transport = self._transport
        if access_token is not None:
            transport.settings.authorize(SESSION, f"Bearer {access_token}")
        self._account = resources.AsyncConsumerAccount(transport)
        self.recipients = resources.AsyncConsumerRecipients(transport)
        self.quotes = resources.AsyncQuotes(transport)
        self.transfers = AsyncTransfers(transport)
        self.banklink = resources.AsyncConsumerBanklink(transport)

    async def request_otp(self, **fields: Unpack[models.RequestOTPBody]) -> models.OTPChallengeResponse:
        """Sends a one-time code to an email address or a phone."""
        return await self._account.request_otp(**fields)

    async def verify_otp(self, **fields: Unpack[models.VerifyOTPBody]) -> models.SessionResponse:
        """Signs in: every later request of this client is one of the consumer."""
        session = await self._account.verify_otp(**fields)
        self._transport.settings.authorize(SESSION, f"Bearer {session['access_token']}")
        return session

    async def me(self) -> models.MeResponse:
        """The consumer who is signed in."""
        return await self._account.me()

    async def logout(self) -> None:
        """Ends the session."""
        await self._account.logout()
        self._transport.settings.credential = None


def _call(
    method: str,
    path: str,
    query: Mapping[str, QueryValue] | None,
    body: Mapping[str, object] | None,
    idempotency_key: str | None,
) -> Call[Any]:
    if idempotency_key is not None:
        if method != CREATES:
            raise ValueError("Only a POST takes an idempotency_key.")
        return replace(sending(prepared(path, idempotency_key, body)), query=query or {})
    content = None if body is None else encoded(body)
    return Call(method, path, query=query or {}, body=content, repeatable=method == "GET")
