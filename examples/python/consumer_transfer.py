"""A consumer signs in with a one-time code, sends money, and keeps the certificate."""

from __future__ import annotations

from uuid import uuid4

from connection import BASE_URL

from settlement_service import Client, ConsumerClient, certificates, errors


def main(base_url: str) -> None:
    consumer = ConsumerClient(base_url)

    # Outside the local sandbox the code comes by email, and the answer does not have it.
    challenge = consumer.request_otp(email=f"{uuid4()}@example.com")
    consumer.verify_otp(challenge_id=challenge["challenge_id"], code=challenge.get("sandbox_code", ""))
    print("signed in")

    recipient = consumer.recipients.create(
        entity_type="individual",
        name="Marcia Brown",
        country="JM",
        bank_details={"bank_name": "Example Bank of Jamaica", "account_number": "004512378", "currency": "JMD"},
    )

    quote = consumer.quotes.create(corridor="US-JM", amount="250.00", payment_method="card")
    becomes = f"{quote['destination_amount']} {quote['destination_currency']}"
    print(f"quote: {quote['amount']} {quote['source_currency']} become {becomes}")

    started = consumer.transfers.create(
        quote_id=quote["quote_id"], recipient_id=recipient["recipient_id"], card_token="tok_visa"
    )
    ended = consumer.transfers.wait(started["transfer_id"])
    print("transfer:", ended["status"])

    file = consumer.transfers.certificate(ended["transfer_id"])
    keys = Client(base_url).certificates.keys()  # they are public: this needs no API key
    certificates.verify(file, keys, settlement_id=ended["settlement_id"])  # raises unless everything is right
    print(f"certificate {file.cert_id}: valid, checked offline")

    consumer.logout()
    try:
        consumer.me()
    except errors.ApiError as error:
        print("signed out:", error.code)


if __name__ == "__main__":
    main(BASE_URL)
