/** A receiver of webhooks: run it with WEBHOOK_SECRETS (several with commas, while you rotate) and PORT. */
import { createServer } from 'node:http';
import { WebhookVerificationError, webhooks } from '../../clients/typescript/index.ts';

const secrets = (process.env['WEBHOOK_SECRETS'] ?? '').split(',');
createServer(async (request, response) => {
  try {
    const event = webhooks.verify(Buffer.concat(await request.toArray()), request.headers, secrets);
    console.log(`${event.type}, number ${event.sequence}`); // Store its id first: an event can arrive twice.
    response.writeHead(204).end();
  } catch (error) {
    console.log(`refused: ${error instanceof WebhookVerificationError ? error.reason : error}`);
    response.writeHead(400).end();
  }
}).listen(Number(process.env['PORT'] ?? 4400), '127.0.0.1');
