"""Whether a text, such as a cell of a CSV file, is a value that this client knows. A later service knows more."""

from __future__ import annotations

from typing import get_args

from typing_extensions import TypeIs

from . import models


def is_corridor(text: str) -> TypeIs[models.CorridorId]:
    return text in get_args(models.CorridorId)


def is_currency(text: str) -> TypeIs[models.Currency]:
    return text in get_args(models.Currency)


def is_payment_method(text: str) -> TypeIs[models.PaymentMethod]:
    return text in get_args(models.PaymentMethod)


def is_payout_rail(text: str) -> TypeIs[models.PayoutRail]:
    return text in get_args(models.PayoutRail)
