"""A receiver of webhooks: run it with WEBHOOK_SECRETS (several with commas, while you rotate) and PORT."""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from settlement_service import WebhookVerificationError, webhooks

secrets = os.environ["WEBHOOK_SECRETS"].split(",")


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        try:
            body = self.rfile.read(int(self.headers["content-length"]))
            event = webhooks.verify(body, self.headers, secrets)
            print(
                f"{event['type']}, number {event['sequence']}", flush=True
            )  # Store its id first: it can arrive twice.
            self.send_response(204)
        except WebhookVerificationError as error:
            print(f"refused: {error.reason}", flush=True)
            self.send_response(400)
        self.end_headers()


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "4400"))), Receiver).serve_forever()
