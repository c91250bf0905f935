/** The TypeScript client as a receiver of webhooks: which deliveries it takes for genuine. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test as plain } from 'vitest';
import { createClient, type WebhookEvent, webhooks } from '../../../clients/typescript/index.ts';
import { repositoryRoot } from '../../../process/local/place.ts';
import { freePort } from '../../../scripts/stack/port.ts';
import { withStack } from '../../support/fixture.ts';
import { until } from '../../support/webhook.ts';

const newSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;
const SECRET = newSecret();
const AT = new Date('2026-11-22T08:00:00.000Z');
const ID = '019ad3f0-5c1b-7d3e-9a6f-0d5a7c1e2b40';
const BODY = JSON.stringify({ id: ID, type: 'settlement.settled', sequence: 5, data: { name: 'Zoë' } });

const OTHER = BODY.replace(ID, 'x');
const WITHOUT_DATA = JSON.stringify({ id: ID, type: 'settlement.settled' });

/** Signed by the reference library, with each of the secrets. */
const headersOf = (body = BODY, secrets = [SECRET], at = AT) => ({
  'Webhook-Id': ID,
  'Webhook-Timestamp': String(at.getTime() / 1_000),
  'Webhook-Signature': secrets.map((secret) => new Webhook(secret).sign(ID, at, body)).join(' '),
});

/** Each header as the list of its lines; of the signatures, one in each line. */
const listsOf = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.split(' ')]));

describe('verification of a delivery accepts', () => {
  plain('bytes, text, and each form of headers', () => {
    for (const body of [BODY, Buffer.from(BODY)])
      for (const headers of [headersOf(), new Headers(headersOf()), listsOf(headersOf(BODY, [newSecret(), SECRET]))])
        expect(webhooks.verify(body, headers, SECRET, { now: AT })).toEqual(JSON.parse(BODY));
  });

  plain('one of several secrets, and one of several signatures', () => {
    const other = newSecret();
    expect(webhooks.verify(BODY, headersOf(), [other, SECRET], { now: AT }).id).toBe(ID);
    expect(webhooks.verify(BODY, headersOf(BODY, [other, SECRET]), SECRET, { now: AT }).id).toBe(ID);
  });

  plain('a delivery at the end of the tolerance, in both directions', () => {
    for (const seconds of [-300, 300]) {
      const now = new Date(AT.getTime() + seconds * 1_000);
      expect(webhooks.verify(BODY, headersOf(), SECRET, { now }).type).toBe('settlement.settled');
      const shorter = () => webhooks.verify(BODY, headersOf(), SECRET, { now, toleranceSeconds: 299 });
      expect(shorter).toThrow('timestamp_outside_tolerance');
    }
  });
});

describe('verification of a delivery refuses', () => {
  plain('each one when the tolerance is no number, such as that of a variable that is not set', () => {
    const verify = () => webhooks.verify(BODY, headersOf(), SECRET, { now: AT, toleranceSeconds: Number(undefined) });
    expect(verify).toThrow('timestamp_outside_tolerance');
  });

  const later = new Date(AT.getTime() + 301_000);
  plain.for([
    ['another secret', 'no_matching_signature', BODY, headersOf(), newSecret(), AT],
    ['a changed body', 'no_matching_signature', `${BODY} `, headersOf(), SECRET, AT],
    ['another id', 'no_matching_signature', BODY, { ...headersOf(), 'Webhook-Id': 'x' }, SECRET, AT],
    ['an old delivery', 'timestamp_outside_tolerance', BODY, headersOf(), SECRET, later],
    ['one of the future', 'timestamp_outside_tolerance', BODY, headersOf(BODY, [SECRET], later), SECRET, AT],
    ['no number as a time', 'malformed_timestamp', BODY, { ...headersOf(), 'Webhook-Timestamp': '1e9' }, SECRET, AT],
    ['no signature', 'missing_header', BODY, { ...headersOf(), 'Webhook-Signature': undefined }, SECRET, AT],
    [
      'a signature of another version',
      'no_matching_signature',
      BODY,
      { ...headersOf(), 'Webhook-Signature': headersOf()['Webhook-Signature'].replace('v1,', 'v2,') },
      SECRET,
      AT,
    ],
    [
      'a signature of another length',
      'no_matching_signature',
      BODY,
      { ...headersOf(), 'Webhook-Signature': 'v1,AAAA' },
      SECRET,
      AT,
    ],
    ['an event without data', 'invalid_body', WITHOUT_DATA, headersOf(WITHOUT_DATA), SECRET, AT],
    ['no JSON', 'invalid_body', 'no', headersOf('no'), SECRET, AT],
    ['no event', 'invalid_body', '{}', headersOf('{}'), SECRET, AT],
    ['an event of another id', 'invalid_body', OTHER, headersOf(OTHER), SECRET, AT],
  ] as const)('%s', ([, reason, body, headers, secret, now]) => {
    expect(() => webhooks.verify(body, headers, secret, { now })).toThrow(expect.objectContaining({ reason }));
  });

  plain('an empty or a short secret', () => {
    for (const secret of ['', 'whsec_', 'whsec_AAAA', SECRET.slice(6), [], ['', SECRET], [SECRET, '']])
      expect(() => webhooks.verify(BODY, headersOf(), secret, { now: AT })).toThrow(TypeError);
  });
});

plain('an event has the form of its type', () => {
  const amountOf = (event: WebhookEvent): string | undefined => {
    switch (event.type) {
      case 'settlement.settled':
        return event.data.destination_amount;
      case 'certificate.issued':
        return event.data.cert_id;
      case 'settlement.exception':
        return event.data.exception.type;
      default:
        return undefined;
    }
  };
  expect(amountOf(JSON.parse('{"type":"settlement.settled","data":{"destination_amount":"1.00"}}'))).toBe('1.00');
});

const PINGS = 25;

const test = withStack({ deliveries: true });

/** A folder for what a receiver stores. */
async function storeOf(onTestFinished: (end: () => Promise<void>) => void): Promise<string> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'receiver-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

type Receiver = { readonly port: number; readonly events: string; readonly lines: string[] };

/** The receiver of the examples, as a process. `lines` grows. */
async function startReceiver({ port, events, lines }: Receiver, secrets: readonly string[]) {
  const child = spawn(process.execPath, ['--import', 'tsx', 'examples/typescript/receiver.ts'], {
    cwd: repositoryRoot,
    env: { ...process.env, PORT: String(port), EVENTS: events, WEBHOOK_SECRETS: secrets.join(',') },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  createInterface(child.stdout).on('line', (line) => lines.push(line));
  await until(
    () =>
      fetch(`http://127.0.0.1:${port}`, { method: 'POST' }).then(
        ({ status }) => status,
        () => 0,
      ),
    (status) => status === 400,
  );
  return async () => {
    child.kill();
    await once(child, 'exit');
  };
}

plain(
  'the receiver of the examples handles each event once, in chunks or stored before it died, and reads no large body',
  async ({ onTestFinished }) => {
    const receiver: Receiver = { port: await freePort(), events: await storeOf(onTestFinished), lines: [] };
    const now = new Date(Math.floor(Date.now() / 1_000) * 1_000);
    await writeFile(path.join(receiver.events, 'stored.json'), '{"type":"settlement.failed","sequence":4}');
    const stop = await startReceiver(receiver, [SECRET]);
    const headers = headersOf(BODY, [SECRET], now);
    // The second one in chunks, without its length.
    for (const body of [BODY, new Blob([BODY]).stream()]) {
      const options = { method: 'POST', headers, body, duplex: 'half' } as const;
      const { status } = await fetch(`http://127.0.0.1:${receiver.port}`, options);
      expect(status).toBe(204);
    }
    const named = request({ port: receiver.port, method: 'POST', headers: { 'content-length': 1_048_577 } });
    named.flushHeaders();
    const chunked = request({ port: receiver.port, method: 'POST' });
    chunked.write(Buffer.alloc(1_048_577));
    const refusals = await Promise.all([named, chunked].map((large) => once(large, 'response')));
    for (const large of [named, chunked]) large.destroy();
    expect(refusals.map(([{ statusCode }]) => statusCode)).toEqual([413, 413]);
    await stop();
    await (await startReceiver(receiver, [SECRET]))();
    const handled = receiver.lines.filter((line) => !line.startsWith('refused'));
    expect(handled).toEqual(['settlement.failed, number 4', 'settlement.settled, number 5']);
  },
);

test('the receiver of the examples verifies every event while the secret is rotated', async ({
  stack,
  partner,
  onTestFinished,
}) => {
  const client = createClient({ baseUrl: stack.baseUrl, apiKey: partner.apiKey });
  const receiver: Receiver = { port: await freePort(), events: await storeOf(onTestFinished), lines: [] };
  const { webhook_id: id, secret } = await client.webhooks.create({
    url: `http://127.0.0.1:${receiver.port}/`,
    event_types: ['*'],
  });
  const verified = () => receiver.lines.filter((line) => line.startsWith('webhook.ping')).length;
  const sendUntil = async (count: number): Promise<void> => {
    await Promise.all(Array.from({ length: PINGS }, () => client.webhooks.sendTestEvent(id)));
    await until(verified, (received) => received >= count);
  };
  let stop = await startReceiver(receiver, [secret]);
  await sendUntil(PINGS);
  // Both secrets sign: the receiver still has the old one, then both, then the new one alone.
  const rotated = await client.webhooks.rotateSecret(id);
  await sendUntil(2 * PINGS);
  await stop();
  stop = await startReceiver(receiver, [rotated.secret, secret]);
  await sendUntil(3 * PINGS);
  await stop();
  stop = await startReceiver(receiver, [rotated.secret]);
  await sendUntil(4 * PINGS);
  await stop();
  expect(verified()).toBe(4 * PINGS);
  // Each start asked once without a signature, to see whether it listens.
  expect(receiver.lines.filter((line) => line.startsWith('refused'))).toEqual(Array(3).fill('refused: missing_header'));
});
