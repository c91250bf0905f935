"""The Python client of the settlement service. It is unpublished: the contract is not frozen."""

from . import certificates, errors, models, webhooks
from ._request import Intent
from .certificates import CertificateFile, CertificateInvalidError
from .client import AsyncClient, AsyncConsumerClient, Client, ConsumerClient
from .errors import ApiError, ConnectionFailedError, SettlementServiceError, WaitTimeoutError
from .paging import AsyncPages, Page, Pages
from .retry import RetryPolicy
from .webhooks import WebhookVerificationError

__all__ = [
    "ApiError",
    "AsyncClient",
    "AsyncConsumerClient",
    "AsyncPages",
    "CertificateFile",
    "CertificateInvalidError",
    "Client",
    "ConnectionFailedError",
    "ConsumerClient",
    "Intent",
    "Page",
    "Pages",
    "RetryPolicy",
    "SettlementServiceError",
    "WaitTimeoutError",
    "WebhookVerificationError",
    "certificates",
    "errors",
    "models",
    "webhooks",
]
