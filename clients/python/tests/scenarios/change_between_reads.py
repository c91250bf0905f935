"""A settlement that changes between two reads of a wait, in both clients.

With API and API_KEY. It prints by how many seconds each client learned of the change later than it happened.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import anyio
import httpx

from settlement_service import AsyncClient, Client, models

API, API_KEY = os.environ["API"], os.environ["API_KEY"]
PART = "100.00"


def is_part(settlement: models.SettlementResponse) -> bool:
    return settlement["amount_received"] == PART


class Change:
    """Changes the settlement after the first answer of a wait, before the client reads that answer."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.settlement_id = _waiting_settlement(client)
        self.at = 0.0

    def make(self, _response: httpx.Response) -> None:
        if self.at:
            return
        self.client.sandbox.send_event(self.settlement_id, event="collection_partial", amount=PART)
        while not is_part(self.client.settlements.get(self.settlement_id)):
            time.sleep(0.02)
        self.at = time.monotonic()

    async def make_async(self, response: httpx.Response) -> None:
        await anyio.to_thread.run_sync(self.make, response)


def _waiting_settlement(client: Client) -> str:
    recipient = client.recipients.create(
        kind="contractor",
        entity_type="individual",
        name="Marcia Brown",
        country="JM",
        bank_details={"bank_name": "Example Bank", "account_number": "004512378", "currency": "JMD"},
    )
    created = client.settlements.create(
        corridor="US-JM",
        amount="250.00",
        recipient_id=recipient["recipient_id"],
        payment_method="card",
        payout_rail="bank_transfer",
        card_token="tok_manual",
    )
    client.settlements.wait(created["settlement_id"], until=["awaiting_funds"])
    return created["settlement_id"]


def blocking(change: Change) -> None:
    with httpx.Client(event_hooks={"response": [change.make]}) as http:
        Client(API, API_KEY, http=http).settlements.wait(change.settlement_id, until=is_part)


async def wait_async(change: Change) -> None:
    async with httpx.AsyncClient(event_hooks={"response": [change.make_async]}) as http:
        await AsyncClient(API, API_KEY, http=http).settlements.wait(change.settlement_id, until=is_part)


def asynchronous(change: Change) -> None:
    anyio.run(wait_async, change)


def late_s(client: Client, wait: Callable[[Change], None]) -> float:
    change = Change(client)
    wait(change)
    return time.monotonic() - change.at


if __name__ == "__main__":
    with Client(API, API_KEY) as partner:
        for style in (blocking, asynchronous):
            print(f"{style.__name__} {late_s(partner, style):.3f}")
