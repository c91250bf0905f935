"""The certificate of a consumer's transfer, beside its signature and in one file, from both clients.

With API. It prints a line for each client whose two certificates are verified and equal.
"""

from __future__ import annotations

import os
from uuid import uuid4

import anyio

from settlement_service import AsyncConsumerClient, CertificateFile, Client, ConsumerClient, certificates

API = os.environ["API"]


def sign_in(consumer: ConsumerClient) -> str:
    challenge = consumer.request_otp(email=f"{uuid4()}@example.com")
    session = consumer.verify_otp(challenge_id=challenge["challenge_id"], code=challenge["sandbox_code"])
    return session["access_token"]


def settle(consumer: ConsumerClient) -> str:
    recipient = consumer.recipients.create(
        entity_type="individual",
        name="Marcia Brown",
        country="JM",
        bank_details={"bank_name": "Example Bank", "account_number": "004512378", "currency": "JMD"},
    )
    quote = consumer.quotes.create(corridor="US-JM", amount="100.00", payment_method="card")
    transfer = consumer.transfers.create(
        quote_id=quote["quote_id"], recipient_id=recipient["recipient_id"], card_token="tok_visa"
    )
    assert consumer.transfers.wait(transfer["transfer_id"])["status"] == "settled"
    return transfer["transfer_id"]


async def fetch(token: str, transfer_id: str) -> tuple[CertificateFile, bytes]:
    async with AsyncConsumerClient(API, token) as consumer:
        transfers = consumer.transfers
        return await transfers.certificate(transfer_id), await transfers.signed_certificate(transfer_id)


def main() -> None:
    keys = Client(API).certificates.keys()
    with ConsumerClient(API) as consumer:
        token = sign_in(consumer)
        transfer_id = settle(consumer)
        transfers = consumer.transfers
        both = {
            "blocking": (transfers.certificate(transfer_id), transfers.signed_certificate(transfer_id)),
            "asynchronous": anyio.run(fetch, token, transfer_id),
        }
    for style, (file, signed) in both.items():
        assert certificates.verify(signed, keys) == certificates.verify(file, keys)
        print(style)


if __name__ == "__main__":
    main()
