"""Pay what is in payroll.csv, each line once, however often this program is killed and run again.

Then it compares the file with what the service has. Its folder keeps each line's intent and certificate.
"""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from settlement_service import TERMINAL_STATUSES, Client, Intent, certificates, models
from settlement_service.choices import is_corridor, is_currency, is_payment_method, is_payout_rail

BATCH = "payroll-2026-11"  #: Names this payroll in its keys. The next month has another one.
AT_ONCE = 5
#: In seconds. A line that takes longer is still open when this program ends. Run it again later.
WAIT = float(os.environ.get("WAIT_S", "60"))
FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else BATCH)
FILE = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent / "payroll.csv"


class Row(NamedTuple):
    reference: str
    name: str
    corridor: models.CorridorId
    rail: models.PayoutRail
    account: str
    currency: models.Currency
    amount: str
    method: models.PaymentMethod


def row_of(line: list[str]) -> Row:
    reference, name, corridor, rail, account, currency, amount, method = line
    if not (is_corridor(corridor) and is_payout_rail(rail) and is_currency(currency) and is_payment_method(method)):
        raise SystemExit(f"{reference}: unknown corridor, rail, currency or payment method")
    if not re.fullmatch(r"[0-9]+(\.[0-9]{1,2})?", amount):
        raise SystemExit(f"{reference}: the amount must be as 310, 310.5 or 310.50")
    return Row(reference, name, corridor, rail, account, currency, f"{Decimal(amount):.2f}", method)


def read_rows() -> list[Row]:
    rows = [row_of(line) for line in list(csv.reader(FILE.read_text().splitlines()))[1:]]
    references = set[str]()
    for row in rows:
        # The keys are made of it: of two lines with the same one, only the first would be paid.
        if row.reference in references:
            raise SystemExit(f"{row.reference}: two lines have this reference")
        references.add(row.reference)
    return rows


def save(file: Path, content: bytes) -> None:
    """Writes a file completely or not at all, whenever the program dies."""
    part = file.with_suffix(".part")
    part.touch(mode=0o600)
    part.write_bytes(content)
    part.replace(file)


def intent_file(row: Row) -> Path:
    return FOLDER / f"{row.reference}.intent.json"


def stored_of(row: Row) -> tuple[str, Intent | None]:
    """The intent of a line, and which of its cells were another thing when it was prepared."""
    if not intent_file(row).exists():
        return "", None
    stored = json.loads(intent_file(row).read_text())
    was = [f"{name} {cell}" for name, cell in stored["row"].items() if cell != getattr(row, name)]
    return ", ".join(was), Intent.from_json(stored["intent"])


def intent_of(client: Client, token: str, row: Row) -> Intent:
    """The stored intent of a line, or a new one, which is stored before it is sent.

    A corrected line takes the place of one of which nothing was accepted. Both have the same key, so that only one of
    them can ever be accepted, also if a request of the first one is still on its way.
    """
    reference, name, corridor, rail, account, currency, amount, method = row
    was, stored = stored_of(row)
    if stored and (not was or any(client.settlements.list(reference=reference, metadata={"batch": BATCH}))):
        return stored
    person: models.CreateRecipientRequest = {
        "kind": "contractor",
        "entity_type": "individual",
        "name": name,
        "country": corridor[-2:],
    }
    if account.startswith("+"):
        person["mobile_details"] = {"provider": "Example Mobile", "phone_number": account}
    else:
        person["bank_details"] = {"bank_name": "Example Bank", "account_number": account, "currency": currency}
    digest = sha256(json.dumps(person).encode()).hexdigest()[:16]  # a corrected recipient is another one
    recipient = client.recipients.create(idempotency_key=f"{BATCH}.{reference}.recipient.{digest}", **person)
    order: models.SettleRequestV2 = {
        "corridor": corridor,
        "amount": amount,
        "recipient_id": recipient["recipient_id"],
        "payment_method": method,
        "payout_rail": rail,
        "purpose": "payroll",
        "reference": reference,
        "metadata": {"batch": BATCH},
    }
    if method == "ach":
        order["banklink_account_token"] = token
    elif method == "card":
        order["card_token"] = "tok_visa"
    intent = client.settlements.prepare(idempotency_key=f"{BATCH}.{reference}", **order)
    save(intent_file(row), json.dumps({"row": row._asdict(), "intent": intent.to_json()}).encode())
    return intent


def certificate_of(row: Row) -> Path:
    return FOLDER / f"{row.reference}.certificate.json"


def finish(client: Client, row: Row, settlement_id: str) -> None:
    held = client.settlements.wait(settlement_id, until=["compliance_hold"], timeout=WAIT)
    if held["status"] == "compliance_hold":
        # 1 000.00 or more: the recipient must be verified. Here this program decides; elsewhere the identity provider.
        key = f"{BATCH}.{row.reference}.verification"
        verification = client.verifications.start(idempotency_key=key, recipient_id=held["recipient_id"])
        client.verifications.complete(verification["verification_id"], status="verified")
    cert_id = client.settlements.wait(settlement_id, timeout=WAIT)["certificate_id"]
    if cert_id and not certificate_of(row).exists():
        signed = client.certificates.download_signed(cert_id)
        certificates.verify(signed, client.certificates.keys(), settlement_id=settlement_id)  # raises if it is forged
        save(certificate_of(row), signed)


def for_each_line(rows: list[Row], work: Callable[[Row], None]) -> None:
    """Five lines at a time: the next one begins when one of them has ended. A fault of one stops no other."""

    def attempt(row: Row) -> None:
        try:
            work(row)
        except Exception as error:
            # One write, so that the lines of several threads do not mix.
            print(f"{row.reference}: {error}\n", end="", file=sys.stderr)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(attempt, rows))


def difference_of(row: Row, one: models.SettlementResponse | None) -> str | None:
    """Why somebody must look at a line; `None` for one that is paid as the file says."""
    if one is None:
        return "NOT PAID, unknown to the service"
    was, intent = stored_of(row)
    prepared = f", prepared as {was}" if was else ""
    if one["status"] not in TERMINAL_STATUSES:
        return f"STILL OPEN, {one['status']}{prepared}"
    if one["status"] != "settled":
        return f"NOT PAID, {one['status']} ({one['failure']['code'] if one['failure'] else ''}){prepared}"
    if was:
        return f"paid, but prepared as {was}"
    paid = (one["corridor"], one["payout_rail"], one["destination_currency"], one["amount"], one["payment_method"])
    for given, wanted in zip(paid, (row.corridor, row.rail, row.currency, row.amount, row.method), strict=True):
        if given != wanted:
            return f"paid, but {given} instead of {wanted}"
    if intent and json.loads(intent.body)["recipient_id"] != one["recipient_id"]:
        return "paid, but to another recipient"
    return None if certificate_of(row).exists() else "paid, but its certificate is not kept"


def reconcile(client: Client, rows: list[Row]) -> None:
    listed = list(client.settlements.list(metadata={"batch": BATCH}))
    found = {one["reference"]: one for one in listed}
    references = {row.reference for row in rows}
    surplus = [one for one in listed if one["reference"] not in references or found[one["reference"]] is not one]
    differences = len(surplus)
    paid: dict[models.Currency, Decimal] = {}
    for row in rows:
        one = found.get(row.reference)
        difference = difference_of(row, one)
        differences += difference is not None
        received = ""
        if one and one["status"] == "settled":
            source = one["source_currency"]
            paid[source] = paid.get(source, Decimal(0)) + Decimal(one["amount"])
            received = f"{one['amount']} {source}, {one['destination_amount']} {one['destination_currency']}"
        print(f"{row.reference} {row.name}: {difference or received}")
    for one in surplus:
        print(f"{one['reference']} {one['settlement_id']}: SURPLUS, {one['status']}")
    for source, amount in sorted(paid.items()):
        print(f"paid {amount} {source}")
    print(f"{len(rows)} lines, {len(listed)} settlements, {differences} to look at")


def main(client: Client, rows: list[Row]) -> None:
    FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The account that the payroll is paid from. A linking widget gives the public token to your server.
    token = client.banklink.exchange(public_token="public-sandbox-checking")["access_token"]
    sent: dict[Row, str] = {}

    def send(row: Row) -> None:
        sent[row] = client.settlements.create(intent_of(client, token, row))["settlement_id"]

    # All are sent before any is waited for, so that a slow one delays no other.
    for_each_line(rows, send)
    for_each_line(list(sent), lambda row: finish(client, row, sent[row]))
    reconcile(client, rows)


if __name__ == "__main__":
    key = os.environ.get("API_KEY") or sys.exit("Set API_KEY to a key of yours, as in the README's five minutes.")
    with Client(os.environ.get("API", "http://127.0.0.1:3000"), key) as service:
        main(service, read_rows())
