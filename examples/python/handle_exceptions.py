"""A hold, a decline, a partial payment and a dispute: what each looks like, and what you do about it."""

from __future__ import annotations

from connection import connect

from settlement_service import Client


def settle(client: Client, recipient_id: str, card_token: str, amount: str = "250.00") -> str:
    accepted = client.settlements.create(
        corridor="US-JM",
        amount=amount,
        recipient_id=recipient_id,
        payment_method="card",
        card_token=card_token,
        payout_rail="bank_transfer",
    )
    return accepted["settlement_id"]


def hold(client: Client, recipient_id: str) -> None:
    """From 1 000.00, the recipient must be verified. The decision releases every settlement that waits for it."""
    settlement_id = settle(client, recipient_id, "tok_visa", "1500.00")
    held = client.settlements.wait(settlement_id, until=["compliance_hold"])
    print(f"hold: {held['status']}, because {held['amount']} {held['source_currency']} need a verified recipient")
    verification = client.verifications.start(recipient_id=recipient_id)
    client.verifications.complete(verification["verification_id"], status="verified")
    print(f"hold: {client.settlements.wait(settlement_id)['status']} after the verification")


def decline(client: Client, recipient_id: str) -> None:
    """A settlement that failed never settles. The payer tries again: another settlement, with a key of its own."""
    ended = client.settlements.wait(settle(client, recipient_id, "tok_declined"))
    print(f"decline: {ended['status']} ({ended['failure']['code'] if ended['failure'] else None})")
    second = client.settlements.wait(settle(client, recipient_id, "tok_visa"))
    print(f"decline: {second['status']} with another card")


def partial_payment(client: Client, recipient_id: str) -> None:
    """Parts add up. Until they cover the amount, the settlement waits; if they never do, what came is due back."""
    settlement_id = settle(client, recipient_id, "tok_manual")
    client.settlements.wait(settlement_id, until=["awaiting_funds"])
    client.sandbox.send_event(settlement_id, event="collection_partial", amount="100.00")
    part = client.settlements.wait(settlement_id, until=lambda one: one["amount_received"] != "0.00")
    print(f"partial: {part['amount_received']} of {part['amount']} {part['source_currency']} received")
    client.sandbox.send_event(settlement_id, event="collection_succeeded")
    print(f"partial: {client.settlements.wait(settlement_id)['status']} after the rest")


def dispute(client: Client, recipient_id: str) -> None:
    """A dispute can come long after the end. It changes no status: read `exceptions`, or receive their event."""
    settlement_id = settle(client, recipient_id, "tok_dispute")
    print(f"dispute: {client.settlements.wait(settlement_id)['status']}")
    disputed = client.settlements.wait(settlement_id, until=lambda one: one["exceptions"])
    print(f"dispute: {disputed['exceptions'][0]['type']}; the status stays {disputed['status']}")


def main(client: Client) -> None:
    recipient = client.recipients.create(
        kind="contractor",
        entity_type="individual",
        name="Marcia Brown",
        country="JM",
        bank_details={"bank_name": "Example Bank of Jamaica", "account_number": "004512378", "currency": "JMD"},
    )
    recipient_id = recipient["recipient_id"]
    hold(client, recipient_id)
    decline(client, recipient_id)
    partial_payment(client, recipient_id)
    dispute(client, recipient_id)


if __name__ == "__main__":
    with connect() as service:
        main(service)
