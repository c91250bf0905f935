"""Settle 250 US dollars, wait for the end, and check the certificate without the service."""

from __future__ import annotations

import os
from pathlib import Path

from connection import connect

from settlement_service import Client, certificates


def main(client: Client) -> None:
    recipient = client.recipients.create(
        kind="contractor",
        entity_type="individual",
        name="Marcia Brown",
        country="JM",
        bank_details={"bank_name": "Example Bank of Jamaica", "account_number": "004512378", "currency": "JMD"},
    )

    # The intent is stored before it is sent. If this program dies now, the stored intent settles once and not twice.
    intent = client.settlements.prepare(
        corridor="US-JM",
        amount="250.00",
        recipient_id=recipient["recipient_id"],
        payment_method="card",
        card_token="tok_visa",
        payout_rail="bank_transfer",
        reference="INV-1001",
    )
    stored = Path(os.environ.get("INTENT_FILE", os.devnull))
    stored.touch(mode=0o600)  # it has the card's token
    stored.write_text(intent.to_json())

    accepted = client.settlements.create(intent)
    print(f"accepted: {accepted['amount']} {accepted['source_currency']} by card for {recipient['name']}")

    ended = client.settlements.wait(accepted["settlement_id"])
    cert_id = ended["certificate_id"]
    if cert_id is None:
        raise SystemExit(f"{ended['status']}: {ended['failure']}")
    print(f"settled: {ended['destination_amount']} {ended['destination_currency']}, simulated")

    file, keys = client.certificates.download(cert_id), client.certificates.keys()
    certificates.verify(file, keys, settlement_id=ended["settlement_id"])  # raises unless everything is right
    print(f"certificate {cert_id}: valid, checked offline")

    again = client.settlements.create(intent)
    print("sent again:", "the same" if again["settlement_id"] == accepted["settlement_id"] else "ANOTHER", "settlement")


if __name__ == "__main__":
    with connect() as service:
        main(service)
