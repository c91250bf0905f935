"""Settlements, while the API is killed. Nothing here repeats a request: the client does.

`python killed_api.py blocking|asynchronous`, with API and API_KEY. It prints a line for each settlement.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import anyio

from settlement_service import AsyncClient, Client, models

COUNT = 12
AT_ONCE = 8
RECIPIENT: models.CreateRecipientRequest = {
    "kind": "contractor",
    "entity_type": "individual",
    "name": "Marcia Brown",
    "country": "JM",
    "bank_details": {"bank_name": "Example Bank", "account_number": "004512378", "currency": "JMD"},
}

retries = 0


def settlement(recipient_id: str, number: int) -> models.SettleRequestV2:
    return {
        "corridor": "US-JM",
        "amount": "25.00",
        "recipient_id": recipient_id,
        "payment_method": "card",
        "payout_rail": "bank_transfer",
        "card_token": "tok_visa",
        "reference": f"Order {number}",
    }


def count_retry(_request: str, _seconds: float) -> None:
    global retries
    retries += 1


def report(statuses: list[str]) -> None:
    print(f"done {statuses.count('settled')} settled, {retries} retries", flush=True)


def blocking(base_url: str, api_key: str) -> None:
    with Client(base_url, api_key, on_retry=count_retry) as client, ThreadPoolExecutor(AT_ONCE) as pool:
        recipient_id = client.recipients.create(**RECIPIENT)["recipient_id"]

        def create(number: int) -> str:
            created = client.settlements.create(**settlement(recipient_id, number))
            print(f"created {created['settlement_id']}", flush=True)
            return created["settlement_id"]

        def wait(settlement_id: str) -> str:
            return client.settlements.wait(settlement_id)["status"]

        report(list(pool.map(wait, pool.map(create, range(COUNT)))))


async def asynchronous(base_url: str, api_key: str) -> None:
    async with AsyncClient(base_url, api_key, on_retry=count_retry) as client:
        recipient_id = (await client.recipients.create(**RECIPIENT))["recipient_id"]
        limiter = anyio.CapacityLimiter(AT_ONCE)
        statuses: list[str] = []

        async def settle(number: int) -> None:
            async with limiter:
                created = await client.settlements.create(**settlement(recipient_id, number))
                print(f"created {created['settlement_id']}", flush=True)
            statuses.append((await client.settlements.wait(created["settlement_id"]))["status"])

        async with anyio.create_task_group() as group:
            for number in range(COUNT):
                group.start_soon(settle, number)
        report(statuses)


if __name__ == "__main__":
    address, key = os.environ["API"], os.environ["API_KEY"]
    if sys.argv[1] == "blocking":
        blocking(address, key)
    else:
        anyio.run(asynchronous, address, key)
