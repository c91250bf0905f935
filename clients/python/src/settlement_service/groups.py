"""The groups of operations that need more than one request, or more than its JSON."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import TypeVar, Union, cast

from . import models, resources
from ._request import Answer, Call, path_of
from .certificates import CertificateFile
from .waiting import TERMINAL, waiting

#: How long a `wait` lasts, in seconds, unless another time is given.
WAIT_TIMEOUT = 60.0


T = TypeVar("T")
#: The statuses to wait for, or a condition on the object.
Until = Union[Collection[models.SettlementStatus], Callable[[T], object]]


class Settlements(resources.Settlements):
    def wait(
        self,
        settlement_id: str,
        *,
        until: Until[models.SettlementResponse] = TERMINAL,
        timeout: float = WAIT_TIMEOUT,
    ) -> models.SettlementResponse:
        """Waits until the settlement is, or has been, in a status of `until`, or changes no more.

        `until` can also be a condition, such as `lambda one: one["exceptions"]`: then it alone ends the wait.

        The service holds each read until something changes, so waiting costs few requests. A settlement can be on hold
        for days: to follow many, or for long, subscribe to events instead.

        Raises `WaitTimeoutError` after `timeout` seconds; its `last` is the settlement.
        """
        return cast(
            "models.SettlementResponse", self._follow(waiting(_settlement(settlement_id), until, timeout, _now))
        )


class AsyncSettlements(resources.AsyncSettlements):
    async def wait(
        self,
        settlement_id: str,
        *,
        until: Until[models.SettlementResponse] = TERMINAL,
        timeout: float = WAIT_TIMEOUT,
    ) -> models.SettlementResponse:
        """Waits until the settlement is, or has been, in a status of `until`, or changes no more.

        `until` can also be a condition, such as `lambda one: one["exceptions"]`: then it alone ends the wait.

        The service holds each read until something changes, so waiting costs few requests. A settlement can be on hold
        for days: to follow many, or for long, subscribe to events instead.

        Raises `WaitTimeoutError` after `timeout` seconds; its `last` is the settlement.
        """
        steps = waiting(_settlement(settlement_id), until, timeout, _now)
        return cast("models.SettlementResponse", await self._follow(steps))


class Transfers(resources.Transfers):
    def wait(
        self,
        transfer_id: str,
        *,
        until: Until[models.TransferResponse] = TERMINAL,
        timeout: float = WAIT_TIMEOUT,
    ) -> models.TransferResponse:
        """Waits until the transfer is, or has been, in a status of `until`, or changes no more.

        Raises `WaitTimeoutError` after `timeout` seconds; its `last` is the transfer.
        """
        return cast("models.TransferResponse", self._follow(waiting(_transfer(transfer_id), until, timeout, _now)))


class AsyncTransfers(resources.AsyncTransfers):
    async def wait(
        self,
        transfer_id: str,
        *,
        until: Until[models.TransferResponse] = TERMINAL,
        timeout: float = WAIT_TIMEOUT,
    ) -> models.TransferResponse:
        """Waits until the transfer is, or has been, in a status of `until`, or changes no more.

        Raises `WaitTimeoutError` after `timeout` seconds; its `last` is the transfer.
        """
        return cast(
            "models.TransferResponse", await self._follow(waiting(_transfer(transfer_id), until, timeout, _now))
        )


class Certificates(resources.Certificates):
    def download(self, cert_id: str) -> CertificateFile:
        """The certificate's exact bytes and their signature, for `certificates.verify`."""
        return self._run(_download(cert_id))

    def pdf(self, cert_id: str) -> bytes:
        """The certificate for print."""
        return self._run(_rendering(cert_id, "application/pdf"))


class AsyncCertificates(resources.AsyncCertificates):
    async def download(self, cert_id: str) -> CertificateFile:
        """The certificate's exact bytes and their signature, for `certificates.verify`."""
        return await self._run(_download(cert_id))

    async def pdf(self, cert_id: str) -> bytes:
        """The certificate for print."""
        return await self._run(_rendering(cert_id, "application/pdf"))


_now = time.monotonic


def _settlement(settlement_id: str) -> Call[object]:
    path = path_of("/v2/settle/{settlement_id}", settlement_id=settlement_id)
    return Call("GET", path, repeatable=True)


def _transfer(transfer_id: str) -> Call[object]:
    path = path_of("/consumer/transfers/{transfer_id}", transfer_id=transfer_id)
    return Call("GET", path, repeatable=True)


def _rendering(cert_id: str, media_type: str) -> Call[bytes]:
    path = path_of("/v1/caribbean/certificate/{cert_id}", cert_id=cert_id)
    return Call("GET", path, headers={"Accept": media_type}, repeatable=True, read=lambda answer: answer.content)


def _download(cert_id: str) -> Call[CertificateFile]:
    def read(answer: Answer) -> CertificateFile:
        return CertificateFile(cert_id, answer.content, answer.headers["x-certificate-signature"])

    path = path_of("/v1/caribbean/certificate/{cert_id}", cert_id=cert_id)
    return Call("GET", path, repeatable=True, read=read)
