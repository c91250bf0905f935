"""Compare the settlements of a day with your own book, and explain each difference."""

from __future__ import annotations

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
}


def main(client: Client) -> None:
    batch = str(uuid4())  # keeps this run apart from others of the same day
    # The day is that of the settlements, by the service's clock, and not that of the moment in which this runs.
    created = settle_a_day(client, batch)
    begin, end = midnight(min(created)), midnight(max(created)) + timedelta(days=1)

    day = client.settlements.list(created_from=begin, created_to=end, metadata={"batch": batch})
    found = {settlement["reference"] or "": settlement for settlement in day}
    for reference in sorted({*BOOK, *found}):
        print(reference, explain(BOOK.get(reference), found.get(reference)))

    settled = client.settlements.list(status="settled", created_from=begin, created_to=end, metadata={"batch": batch})
    print(f"{len(found)} settlements today, {sum(1 for _ in settled)} of them settled")


def midnight(created_at: str) -> datetime:
    return datetime.fromisoformat(created_at[:10]).replace(tzinfo=timezone.utc)


def explain(booked: Entry | None, found: models.SettlementResponse | None) -> str:
    if found is None:
        return "is missing at the service: nothing was accepted, so its intent can be sent again"
    status, amount, currency, failure = found["status"], found["amount"], found["source_currency"], found["failure"]
    if booked is None:
        return f"is missing in the book: {status}, {amount} {currency}"
    if booked.status != status:
        return f"differs: booked as {booked.status}, but {status} ({failure['code'] if failure else 'no failure'})"
    if booked.amount != amount:
        return f"differs: booked with {booked.amount} {currency}, {status} with {amount} {currency}"
    return f"agrees: {status}, {amount} {currency}"


def settle_a_day(client: Client, batch: str) -> list[str]:
    """Four settlements, one of which fails. A real day has them already. Returns when they were created."""
    recipient = client.recipients.create(
        kind="contractor",
        entity_type="individual",
        name="Marcia Brown",
        country="JM",
        bank_details={"bank_name": "Example Bank of Jamaica", "account_number": "004512378", "currency": "JMD"},
    )

    def settle(reference: str) -> str:
        accepted = client.settlements.create(
            corridor="US-JM",
            amount="250.00",
            recipient_id=recipient["recipient_id"],
            payment_method="card",
            card_token="tok_declined" if reference == "INV-1002" else "tok_visa",
            payout_rail="bank_transfer",
            reference=reference,
            metadata={"batch": batch},
        )
        return client.settlements.wait(accepted["settlement_id"])["created_at"]

    with ThreadPoolExecutor() as pool:
        return list(pool.map(settle, ["INV-1001", "INV-1002", "INV-1003", "INV-1004"]))


if __name__ == "__main__":
    with connect() as service:
        main(service)
