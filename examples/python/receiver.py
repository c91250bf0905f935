"""A receiver of webhooks: run it with WEBHOOK_SECRETS (several with commas, while you rotate), PORT and EVENTS, a file.

It stores each event before it answers, and handles what is stored afterwards. So whenever it dies, no event that it has
answered is lost.
"""

import json
import os
import sqlite3
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

from settlement_service import WebhookVerificationError, webhooks

# No event is larger. Anybody can send to this address: a body without a limit would fill the memory.
BODY_BYTES_MAX = 1_048_576

secrets = os.environ["WEBHOOK_SECRETS"].split(",")
arrived = Event()


def database() -> sqlite3.Connection:
    """Each thread has a connection of its own."""
    one = sqlite3.connect(os.environ.get("EVENTS", "events.sqlite"))
    one.execute("CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, body BLOB, handled INTEGER DEFAULT 0)")
    return one


class Receiver(BaseHTTPRequestHandler):
    timeout = 15

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        # Of a negative length, everything would be read that ever comes.
        if not 0 <= length <= BODY_BYTES_MAX:
            self.close_connection = True
            self.send_error(413)
            return
        try:
            body = self.rfile.read(length)
            event = webhooks.verify(body, self.headers, secrets)
            with closing(database()) as events, events:  # committed before the answer
                # An event can arrive twice: then its id and its bytes are the same.
                events.execute("INSERT OR IGNORE INTO events (id, body) VALUES (?, ?)", (event["id"], body))
            self.send_response(204)
            arrived.set()
        except WebhookVerificationError as error:
            print(f"refused: {error.reason}\n", end="", flush=True)
            self.send_response(400)
        self.end_headers()


def handle_stored() -> None:
    """Handles what is stored, also what is left from before this program started."""
    while True:
        arrived.clear()
        with closing(database()) as events:
            for event_id, body in events.execute("SELECT id, body FROM events WHERE NOT handled").fetchall():
                with events:  # your work and its mark in one transaction
                    event = json.loads(body)
                    print(f"{event['type']}, number {event['sequence']}\n", end="", flush=True)
                    events.execute("UPDATE events SET handled = 1 WHERE id = ?", (event_id,))
        arrived.wait()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "4400"))), Receiver)
    Thread(target=server.serve_forever, daemon=True).start()
    handle_stored()
