"""The groups of operations that need more than one request, or more than its JSON."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection
from typing import TypeVar, Union, cast

from . import models, resources
from ._request import Answer, Call, call_of, path_of
from .certificates import CertificateFile, CertificateInvalidError, signed_parts
from .waiting import TERMINAL_STATUSES, waiting

#: A certificate with its signature in one file.
SIGNED_FILE = "application/jose+json"
PRINTABLE = "application/pdf"
CERTIFICATE_ID = re.compile(r"CERT-[0-9A-F]{32}")
#: How long a `wait` lasts, in seconds, unless another time is given.
WAIT_TIMEOUT = 60.0


T = TypeVar("T")
#: The statuses to wait for, or a condition on the object.
Until = Union[models.SettlementStatus, Collection[models.SettlementStatus], Callable[[T], object]]


class Settlements(resources.Settlements):
    def wait(
        self,
        settlement_id: str,
        *,
        until: Until[models.SettlementResponse] = TERMINAL_STATUSES,
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
        until: Until[models.SettlementResponse] = TERMINAL_STATUSES,
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
        until: Until[models.TransferResponse] = TERMINAL_STATUSES,
        timeout: float = WAIT_TIMEOUT,
    ) -> models.TransferResponse:
        """Waits until the transfer is, or has been, in a status of `until`, or changes no more.

        Raises `WaitTimeoutError` after `timeout` seconds; its `last` is the transfer.
        """
        return cast("models.TransferResponse", self._follow(waiting(_transfer(transfer_id), until, timeout, _now)))

    def certificate(self, transfer_id: str) -> CertificateFile:
        """The certificate of a settled transfer: its exact bytes and their signature, for `certificates.verify`."""
        return self._run(_transfer_certificate(transfer_id))

    def signed_certificate(self, transfer_id: str) -> bytes:
        """The certificate as one self-contained file with its signature, for `certificates.verify`."""
        return self._run(_transfer_signed_file(transfer_id))


class AsyncTransfers(resources.AsyncTransfers):
    async def wait(
        self,
        transfer_id: str,
        *,
        until: Until[models.TransferResponse] = TERMINAL_STATUSES,
        timeout: float = WAIT_TIMEOUT,
    ) -> models.TransferResponse:
        """Waits until the transfer is, or has been, in a status of `until`, or changes no more.

        Raises `WaitTimeoutError` after `timeout` seconds; its `last` is the transfer.
        """
        return cast(
            "models.TransferResponse", await self._follow(waiting(_transfer(transfer_id), until, timeout, _now))
        )

    async def certificate(self, transfer_id: str) -> CertificateFile:
        """The certificate of a settled transfer: its exact bytes and their signature, for `certificates.verify`."""
        return await self._run(_transfer_certificate(transfer_id))

    async def signed_certificate(self, transfer_id: str) -> bytes:
        """The certificate as one self-contained file with its signature, for `certificates.verify`."""
        return await self._run(_transfer_signed_file(transfer_id))


class Certificates(resources.Certificates):
    def download(self, cert_id: str) -> CertificateFile:
        """The certificate's exact bytes and their signature, for `certificates.verify`."""
        return self._run(_download(cert_id))

    def download_signed(self, cert_id: str) -> bytes:
        """One self-contained file with its signature, for `certificates.verify`: to keep or to pass on."""
        return self._run(_signed_file(cert_id))

    def pdf(self, cert_id: str) -> bytes:
        """The certificate for print."""
        return self._run(_printable(cert_id))


class AsyncCertificates(resources.AsyncCertificates):
    async def download(self, cert_id: str) -> CertificateFile:
        """The certificate's exact bytes and their signature, for `certificates.verify`."""
        return await self._run(_download(cert_id))

    async def download_signed(self, cert_id: str) -> bytes:
        """One self-contained file with its signature, for `certificates.verify`: to keep or to pass on."""
        return await self._run(_signed_file(cert_id))

    async def pdf(self, cert_id: str) -> bytes:
        """The certificate for print."""
        return await self._run(_printable(cert_id))


_now = time.monotonic


def _settlement(settlement_id: str) -> Call[object]:
    return call_of("GET", "/v2/settle/{settlement_id}", settlement_id=settlement_id)


def _transfer(transfer_id: str) -> Call[object]:
    return call_of("GET", "/consumer/transfers/{transfer_id}", transfer_id=transfer_id)


def _printable(cert_id: str) -> Call[bytes]:
    path = path_of("/v1/caribbean/certificate/{cert_id}", cert_id=cert_id)
    return Call("GET", path, headers={"Accept": PRINTABLE}, repeatable=True, read=lambda answer: answer.content)


def _signed_file(cert_id: str) -> Call[bytes]:
    return _signed(path_of("/v1/caribbean/certificate/{cert_id}", cert_id=cert_id))


def _transfer_signed_file(transfer_id: str) -> Call[bytes]:
    return _signed(path_of("/consumer/transfers/{transfer_id}/certificate", transfer_id=transfer_id))


def _signed(path: str) -> Call[bytes]:
    return Call("GET", path, headers={"Accept": SIGNED_FILE}, repeatable=True, read=_signed_bytes)


def _signed_bytes(answer: Answer) -> bytes:
    try:
        signed_parts(answer.content)
    except CertificateInvalidError:
        raise ValueError("The answer is not a signed file.") from None
    return answer.content


def _download(cert_id: str) -> Call[CertificateFile]:
    path = path_of("/v1/caribbean/certificate/{cert_id}", cert_id=cert_id)
    return Call("GET", path, repeatable=True, read=_certificate_file)


def _transfer_certificate(transfer_id: str) -> Call[CertificateFile]:
    path = path_of("/consumer/transfers/{transfer_id}/certificate", transfer_id=transfer_id)
    return Call("GET", path, repeatable=True, read=_certificate_file)


def _certificate_file(answer: Answer) -> CertificateFile:
    """The service names the file by the certificate's id."""
    found = CERTIFICATE_ID.search(answer.headers.get("content-disposition", ""))
    signature = answer.headers.get("x-certificate-signature")
    if found is None or signature is None:
        raise ValueError("The answer is not a certificate.")
    return CertificateFile(found.group(), answer.content, signature)
