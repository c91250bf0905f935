"""Runs the receiver of the examples, lets the service send it an event twice, then another one.

`python receiver_example.py <receiver.py>`, with API, API_KEY and PORT. It prints what the receiver printed.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path

from settlement_service import Client, models


def until_listening(port: int) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)


def wait_for_deliveries(client: Client, webhook_id: str, attempts: int) -> list[models.WebhookDeliveryResponse]:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        deliveries = list(client.webhooks.deliveries(webhook_id, status="succeeded"))
        if sum(one["attempt_count"] for one in deliveries) >= attempts:
            return deliveries
        time.sleep(0.05)
    raise TimeoutError


def main(program: str, port: int) -> None:
    with tempfile.TemporaryDirectory() as folder, Client(os.environ["API"], os.environ["API_KEY"]) as client:
        webhook = client.webhooks.create(url=f"http://127.0.0.1:{port}/", event_types=["webhook.ping"])
        secrets = f"whsec_{'A' * 43}=,{webhook['secret']}"
        env = {**os.environ, "WEBHOOK_SECRETS": secrets, "PORT": str(port), "EVENTS": str(Path(folder, "events"))}
        command = [sys.executable, program]
        with subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as receiver:
            until_listening(port)
            webhook_id = webhook["webhook_id"]
            client.webhooks.send_test_event(webhook_id, event_type="settlement.settled")
            assert receiver.stdout is not None
            print(receiver.stdout.readline().strip())
            sent = wait_for_deliveries(client, webhook_id, 1)[0]
            client.webhooks.redeliver(webhook_id, sent["delivery_id"])
            wait_for_deliveries(client, webhook_id, 2)
            client.webhooks.send_test_event(webhook_id, event_type="settlement.failed")
            print(receiver.stdout.readline().strip())
            for length in ("1048577", "-1"):
                endless = HTTPConnection("127.0.0.1", port, timeout=5)
                endless.putrequest("POST", "/")
                endless.putheader("content-length", length)
                endless.endheaders()
                print(endless.getresponse().status)
            receiver.kill()


if __name__ == "__main__":
    main(sys.argv[1], int(os.environ["PORT"]))
