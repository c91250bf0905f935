/** Subscribes, settles, and prints the events of the settlement in their order, which need not be that of arrival. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createClient, type WebhookEvent, WebhookVerificationError, webhooks } from '../../clients/typescript/index.ts';
import { connection } from './connection.ts';

const client = createClient(connection());

const server = createServer().listen(Number(process.env['PORT'] ?? 4400), '127.0.0.1');
await once(server, 'listening');
const address = server.address();
const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`;
const { webhook_id, secret } = await client.webhooks.create({ url, event_types: ['*'] });

/** By their ids, because an event can arrive twice. */
const received = new Map<string, WebhookEvent>();
server.on('request', async (request, response) => {
  try {
    // The signature is over the bytes as they came, so they are verified before they are parsed.
    const event = webhooks.verify(Buffer.concat(await request.toArray()), request.headers, secret);
    received.set(event.id, event);
    response.writeHead(204).end();
  } catch (error) {
    if (error instanceof WebhookVerificationError) console.log(`refused: ${error.reason}`);
    response.writeHead(400).end();
  }
  server.emit('received');
});

const recipient = await client.recipients.create({
  kind: 'contractor',
  entity_type: 'individual',
  name: 'Marcia Brown',
  country: 'JM',
  bank_details: { bank_name: 'Example Bank of Jamaica', account_number: '004512378', currency: 'JMD' },
});
const { settlement_id } = await client.settlements.create({
  corridor: 'US-JM',
  amount: '250.00',
  recipient_id: recipient.recipient_id,
  payment_method: 'card',
  payout_rail: 'bank_transfer',
  card_token: 'tok_visa',
});

const LAST_NUMBER = 6;
const WAIT_MS = Number(process.env['WAIT_S'] ?? 60) * 1_000;
/** Other objects have events too. The type of an event says what its data is. */
const ofSettlement = () =>
  [...received.values()].filter(
    ({ type, data }) =>
      type.startsWith('settlement.') && 'settlement_id' in data && data.settlement_id === settlement_id,
  );
const signal = AbortSignal.timeout(WAIT_MS);
while (ofSettlement().length < LAST_NUMBER) await once(server, 'received', { signal });
for (const { type, sequence } of ofSettlement().sort((left, right) => left.sequence - right.sequence))
  console.log(`${type}, number ${sequence}`);

// Anybody can send to this address. Only the service has the secret.
const [genuine] = received.values();
await fetch(url, {
  method: 'POST',
  headers: {
    'webhook-id': genuine?.id ?? '',
    'webhook-timestamp': String(Math.floor(Date.now() / 1_000)),
    'webhook-signature': 'v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',
  },
  body: JSON.stringify(genuine),
});

await client.webhooks.delete(webhook_id);
server.close();
server.closeAllConnections();
