"""Subscribe, settle, and print the events of the settlement in their order, which need not be that of arrival."""

from __future__ import annotations

import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Thread

import httpx
from connection import connect

from settlement_service import Client, WebhookVerificationError, models, webhooks

LAST_NUMBER = 6
SECONDS_MAX = 60

secrets: list[str] = []
received: Queue[models.WebhookEvent] = Queue()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        # The signature is over the bytes as they came, so they are verified before they are parsed.
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            received.put(webhooks.verify(body, self.headers, secrets))
            self.send_response(204)
        except WebhookVerificationError as error:
            print("refused:", error.reason)
            self.send_response(400)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is printed for each request."""


def main(client: Client, url: str) -> None:
    webhook = client.webhooks.create(url=url, event_types=["*"])
    secrets.append(webhook["secret"])
    recipient = client.recipients.create(
        kind="contractor",
        entity_type="individual",
        name="Marcia Brown",
        country="JM",
        bank_details={"bank_name": "Example Bank of Jamaica", "account_number": "004512378", "currency": "JMD"},
    )
    settlement = client.settlements.create(
        corridor="US-JM",
        amount="250.00",
        recipient_id=recipient["recipient_id"],
        payment_method="card",
        card_token="tok_visa",
        payout_rail="bank_transfer",
    )

    # By their ids, because an event can arrive twice. Other objects have events too, and so have other settlements.
    events: dict[str, models.WebhookEvent] = {}
    while len(events) < LAST_NUMBER:
        event = received.get(timeout=SECONDS_MAX)
        is_same = event["data"].get("settlement_id") == settlement["settlement_id"]
        if is_same and event["type"].startswith("settlement."):
            events[event["id"]] = event
    for event in sorted(events.values(), key=lambda event: event["sequence"]):
        print(f"{event['type']}, number {event['sequence']}")

    # Anybody can send to this address. Only the service has the secret.
    forged = {
        "webhook-id": next(iter(events)),
        "webhook-timestamp": str(int(time.time())),
        "webhook-signature": "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    }
    httpx.post(url, headers=forged, json=next(iter(events.values())))

    client.webhooks.delete(webhook["webhook_id"])


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "4400"))), Receiver)
    Thread(target=server.serve_forever, daemon=True).start()
    with connect() as service:
        main(service, f"http://127.0.0.1:{server.server_address[1]}/")
