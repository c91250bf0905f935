"""Compare the settlements of a day with your own book, and explain each difference."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from uuid import uuid4

from connection import connect

from settlement_service import Client, models


@dataclass(frozen=True)
class Entry:
    status: models.SettlementStatus
    amount: str


#: What the partner believes.
BOOK = {
    "INV-1001": Entry("settled", "250.00"),
    "INV-1002": Entry("settled", "250.00"),
    "INV-1003": Entry("settled", "300.00"),
    "INV-1005": Entry("settled", "250.00"),
    "INV-1006": Entry("settled", "250.00"),
    "INV-1007": Entry("settled", "250.00"),
}
NOT_PAID = ("rejected", "expired", "failed", "canceled")


def main(client: Client) -> None:
    batch = str(uuid4())  # keeps this run apart from others of the same day
    # The day is that of the settlements, by the service's clock, and not that of the moment in which this runs.
    created = settle_a_day(client, batch)
    begin, end = midnight(min(created)), midnight(max(created)) + timedelta(days=1)

    day = list(client.settlements.list(created_from=begin, created_to=end, metadata={"batch": batch}))
    # Several may have one reference: an order that was declined and sent again, or one that was paid twice.
    found = defaultdict[str, list[models.SettlementResponse]](list)
    for one in day:
        found[one["reference"] or ""].append(one)
    for reference in sorted({*BOOK, *found}):
        print(reference, explain(BOOK.get(reference), found[reference]))

    settled = client.settlements.list(status="settled", created_from=begin, created_to=end, metadata={"batch": batch})
    print(f"{len(day)} settlements today, {sum(1 for _ in settled)} of them settled")


def midnight(created_at: str) -> datetime:
    return datetime.fromisoformat(created_at[:10]).replace(tzinfo=timezone.utc)


def text_of(one: models.SettlementResponse) -> str:
    failure = one["failure"]
    detail = f" ({failure['code']})" if failure else f", {one['amount']} {one['source_currency']}"
    return one["status"] + detail


def explain(booked: Entry | None, found: list[models.SettlementResponse]) -> str:
    """The newest comes first in `found`."""
    not_paid = [one for one in found if one["status"] in NOT_PAID]
    paid = [one for one in found if one not in not_paid]
    if len(paid) > 1:
        return f"differs: paid or being paid {len(paid)} times: {'; '.join(map(text_of, paid))}"
    if not found:
        return "is missing at the service: nothing was accepted, so its intent can be sent again"
    one = paid[0] if paid else not_paid.pop(0)
    beside = "".join(f"; beside it {text_of(other)}" for other in not_paid)
    status, amount, currency = one["status"], one["amount"], one["source_currency"]
    if booked is None:
        return f"is missing in the book: {text_of(one)}{beside}"
    if booked.status != status:
        return f"differs: booked as {booked.status}, but {text_of(one)}{beside}"
    if booked.amount != amount:
        return f"differs: booked with {booked.amount} {currency}, {status} with {amount} {currency}{beside}"
    return f"agrees: {text_of(one)}{beside}"


def settle_a_day(client: Client, batch: str) -> list[str]:
    """Some settlements, of which two fail. A real day has them already. Returns when they were created."""
    recipient = client.recipients.create(
        kind="contractor",
        entity_type="individual",
        name="Marcia Brown",
        country="JM",
        bank_details={"bank_name": "Example Bank of Jamaica", "account_number": "004512378", "currency": "JMD"},
    )

    def settle(reference: str, card_token: str) -> str:
        accepted = client.settlements.create(
            corridor="US-JM",
            amount="250.00",
            recipient_id=recipient["recipient_id"],
            payment_method="card",
            card_token=card_token,
            payout_rail="bank_transfer",
            reference=reference,
            metadata={"batch": batch},
        )
        return client.settlements.wait(accepted["settlement_id"])["created_at"]

    settled = ["INV-1001", "INV-1003", "INV-1004", "INV-1006", "INV-1007", "INV-1007"]
    declined = ["INV-1002", "INV-1006"]
    with ThreadPoolExecutor() as pool:
        return list(
            pool.map(settle, settled + declined, ["tok_visa"] * len(settled) + ["tok_declined"] * len(declined))
        )


if __name__ == "__main__":
    with connect() as service:
        main(service)
