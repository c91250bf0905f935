"""A receiver verifies every delivery, while the secret is rotated and the new one is deployed later.

`python rotated_secret.py`, with API and API_KEY. It prints how many it has verified.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import anyio

from settlement_service import AsyncClient, webhooks

PINGS = 20
AT_ONCE = 8
DEADLINE_S = 60

secret = ""
verified: Counter[str] = Counter()
refused: Counter[str] = Counter()


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            verified[webhooks.verify(body, self.headers, secret)["id"]] += 1
            self.send_response(204)
        except webhooks.WebhookVerificationError as error:
            refused[error.reason] += 1
            self.send_response(400)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is printed for each request."""


async def until_verified(count: int) -> None:
    end = time.monotonic() + DEADLINE_S
    while verified.total() < count and not refused and time.monotonic() < end:  # noqa: ASYNC110 - it runs in threads
        await anyio.sleep(0.02)


async def main(base_url: str, api_key: str, url: str) -> None:
    global secret
    async with AsyncClient(base_url, api_key) as client:
        since = datetime.now(timezone.utc)
        webhook = await client.webhooks.create(url=url, event_types=["webhook.ping"])
        webhook_id, secret = webhook["webhook_id"], webhook["secret"]
        limiter = anyio.CapacityLimiter(AT_ONCE)

        async def ping() -> None:
            async with limiter:
                await client.webhooks.send_test_event(webhook_id)

        async with anyio.create_task_group() as group:
            for number in range(PINGS):
                group.start_soon(ping)
                if number == PINGS // 2:
                    rotated = await client.webhooks.rotate_secret(webhook_id)
        await until_verified(PINGS)
        # The last pings may not be recorded yet: they are pending, and sent once.
        replayed = await client.webhooks.replay(webhook_id, since=since, statuses=["succeeded"])
        replay = await client.webhooks.get_replay(webhook_id, replayed["replay_id"])
        while replay["status"] == "running":
            await anyio.sleep(0.02)
            replay = await client.webhooks.get_replay(webhook_id, replayed["replay_id"])
        # From here on this receiver knows the new secret only. The old one still signs too.
        secret = rotated["secret"]
        await until_verified(PINGS + replay["sent"])
        print(f"{verified.total()} verified of {len(verified)} events, {refused.total()} refused", flush=True)


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/events"
        anyio.run(main, os.environ["API"], os.environ["API_KEY"], address)
        server.shutdown()
