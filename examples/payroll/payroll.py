"""Pay what is in payroll.csv, each line once, however often this program is killed and run again.

Then it compares the file with what the service has. Its folder keeps each line's intent and certificate.
"""

from __future__ import annotations

import csv
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

from settlement_service import Client, Intent, certificates, models
from settlement_service.choices import is_corridor, is_currency, is_payment_method, is_payout_rail

BATCH = "payroll-2026-11"  #: Names this payroll in its keys. The next month has another one.
AT_ONCE = 5
FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else BATCH)
Row = dict[str, str]


def save(file: Path, content: bytes) -> None:
    """Writes a file completely or not at all, whenever the program dies."""
    part = file.with_suffix(".part")
    part.touch(mode=0o600)
    part.write_bytes(content)
    part.replace(file)


def intent_of(client: Client, token: str, row: Row) -> Intent:
    """The stored intent of a line, or a new one, which is stored before it is sent."""
    file = FOLDER / f"{row['reference']}.intent.json"
    if file.exists():
        return Intent.from_json(file.read_text())
    _, _, corridor, rail, account, currency, amount, method = row.values()
    if not (is_corridor(corridor) and is_payout_rail(rail) and is_currency(currency) and is_payment_method(method)):
        raise SystemExit(f"{row['reference']}: unknown corridor, rail, currency or payment method")
    person: models.CreateRecipientRequest = {
        "kind": "contractor",
        "entity_type": "individual",
        "name": row["name"],
        "country": corridor[-2:],
    }
    if account.startswith("+"):
        person["mobile_details"] = {"provider": "Example Mobile", "phone_number": account}
    else:
        person["bank_details"] = {"bank_name": "Example Bank", "account_number": account, "currency": currency}
    recipient = client.recipients.create(idempotency_key=f"{BATCH}.{row['reference']}.recipient", **person)
    order: models.SettleRequestV2 = {
        "corridor": corridor,
        "amount": amount,
        "recipient_id": recipient["recipient_id"],
        "payment_method": method,
        "payout_rail": rail,
        "purpose": "payroll",
        "reference": row["reference"],
        "metadata": {"batch": BATCH},
    }
    if method == "ach":
        order["banklink_account_token"] = token
    else:
        order["card_token"] = "tok_visa"
    intent = client.settlements.prepare(idempotency_key=f"{BATCH}.{row['reference']}", **order)
    save(file, intent.to_json().encode())
    return intent


def pay(client: Client, token: str, row: Row) -> None:
    settlement_id = client.settlements.create(intent_of(client, token, row))["settlement_id"]
    held = client.settlements.wait(settlement_id, until=["compliance_hold"])
    if held["status"] == "compliance_hold":
        # 1 000.00 or more: the recipient must be verified. Here this program decides; elsewhere the identity provider.
        key = f"{BATCH}.{row['reference']}.verification"
        verification = client.verifications.start(idempotency_key=key, recipient_id=held["recipient_id"])
        client.verifications.complete(verification["verification_id"], status="verified")
    cert_id = client.settlements.wait(settlement_id)["certificate_id"]
    file = FOLDER / f"{row['reference']}.certificate.json"
    if cert_id and not file.exists():
        signed = client.certificates.download_signed(cert_id)
        certificates.verify(signed, client.certificates.keys(), settlement_id=settlement_id)  # raises if it is forged
        save(file, signed)


def reconcile(client: Client, rows: list[Row]) -> None:
    listed = list(client.settlements.list(metadata={"batch": BATCH}))
    found = {one["reference"]: one for one in listed}
    differences = len(listed) - len(rows)
    paid: dict[str, Decimal] = {}
    for row in rows:
        one = found.get(row["reference"])
        print(row["reference"], row["name"], end=": ")
        if one and one["status"] == "settled" and one["amount"] == row["amount"]:
            source, destination = str(one["source_currency"]), one["destination_currency"]
            paid[source] = paid.get(source, Decimal(0)) + Decimal(one["amount"])
            print(f"{one['amount']} {source}, {one['destination_amount']} {destination}")
        else:
            differences += 1
            status, failure = (one["status"], one["failure"]) if one else ("unknown", None)
            print(f"NOT PAID, {status} ({failure['code'] if failure else ''})")
    for source, amount in sorted(paid.items()):
        print(f"paid {amount} {source}")
    print(f"{len(rows)} lines, {len(listed)} settlements, {differences} to look at")


def main(client: Client) -> None:
    FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
    rows: list[Row] = list(csv.DictReader((Path(__file__).parent / "payroll.csv").read_text().splitlines()))
    # The account that the payroll is paid from. A linking widget gives the public token to your server.
    token = client.banklink.exchange(public_token="public-sandbox-checking")["access_token"]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda row: pay(client, token, row), rows))
    reconcile(client, rows)


if __name__ == "__main__":
    key = os.environ.get("API_KEY") or sys.exit("Set API_KEY to a key of yours, as in the README's five minutes.")
    with Client(os.environ.get("API", "http://127.0.0.1:3000"), key) as service:
        main(service)
