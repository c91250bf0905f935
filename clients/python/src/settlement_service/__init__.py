"""The Python client of the settlement service. It is unpublished: the contract is not frozen."""

from . import certificates, errors, models, webhooks
from ._request import Intent
from .certificates import CertificateFile, CertificateInvalidError
from .choices import is_corridor, is_currency, is_payment_method, is_payout_rail
from .client import AsyncClient, AsyncConsumerClient, Client, ConsumerClient
from .errors import ApiError, ConnectionFailedError, SettlementServiceError, WaitTimeoutError
from .paging import AsyncPages, Page, Pages
from .retry import RetryPolicy
from .waiting import TERMINAL_STATUSES
from .webhooks import WebhookVerificationError

__all__ = [
    "TERMINAL_STATUSES",
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
    "is_corridor",
    "is_currency",
    "is_payment_method",
    "is_payout_rail",
    "models",
    "webhooks",
]
