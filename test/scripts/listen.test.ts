/** `npm run sandbox -- listen` names the reason why a delivery does not verify (contract §11). */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { signWebhook } from '../../activities/webhook-signature.ts';
import { createListener, open } from '../../scripts/sandbox/listen.ts';

const KEY = Buffer.alloc(32, 7);
const OTHER_KEY = Buffer.alloc(32, 8);
const SECRET = `whsec_${KEY.toString('base64')}`;
const NOW = new Date('2026-11-21T08:00:00.000Z');
const ID = '019ad3f0-5c1b-7d3e-9a6f-0d5a7c1e2b40';
const BODY = Buffer.from(JSON.stringify({ id: ID, type: 'webhook.ping', data: { url: 'é' } }));

let printed: string[];
let server: ReturnType<typeof createListener>;
let url: string;

beforeEach(async () => {
  server?.close();
  printed = [];
  server = createListener({
    secret: () => SECRET,
    print: (line) => printed.push(line),
    printData: () => undefined,
    now: () => NOW,
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});
afterAll(() => server.close());

const deliver = async (
  options: { keys?: Buffer[]; body?: Buffer; at?: Date; headers?: Record<string, string> } = {},
): Promise<string> => {
  const timestamp = Math.floor((options.at ?? NOW).getTime() / 1_000);
  const signature = signWebhook(options.keys ?? [KEY], { id: ID, timestamp, body: BODY });
  const headers = options.headers ?? {
    'webhook-id': ID,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signature,
  };
  const { status } = await fetch(url, { method: 'POST', headers, body: options.body ?? BODY });
  return `${status} ${printed.at(-2)}`;
};

describe('a delivery that does not verify is answered 400 with the reason', () => {
  test('wrong_secret, when another secret signed the unchanged bytes', async () => {
    expect(await deliver({ keys: [OTHER_KEY] })).toMatch(/^400 .*wrong_secret/);
  });

  test.each([
    ['a framework that formats JSON', Buffer.from(JSON.stringify(JSON.parse(BODY.toString()), null, 2))],
    ['a proxy that adds a line', Buffer.concat([BODY, Buffer.from('\n')])],
    ['an encoding that was lost', Buffer.from(BODY.toString(), 'latin1')],
    ['a body that was cut', BODY.subarray(0, 20)],
  ])('changed_body, for %s', async (_, body) => {
    expect(await deliver({ body })).toMatch(/^400 .*changed_body/);
  });

  test('changed_body, for one changed value, after the secret has verified a delivery', async () => {
    const body = Buffer.from(BODY.toString().replace('webhook.ping', 'webhook.pong'));
    expect(await deliver()).toMatch(/^204 .*verified/);
    expect(await deliver({ body })).toMatch(/^400 .*changed_body/);
  });

  test('names another subscription, when its secret signed a delivery after this one has verified another', async () => {
    expect(await deliver()).toMatch(/^204 .*verified/);
    expect(await deliver({ keys: [OTHER_KEY] })).toMatch(/^400 .*another subscription/);
  });

  test.each([-301, 301])('clock, when the signature is %i seconds from now', async (seconds) => {
    expect(await deliver({ at: new Date(NOW.getTime() + seconds * 1_000) })).toMatch(/^400 .*clock/);
  });

  test('headers_missing, when it is not a delivery of this service', async () => {
    expect(await deliver({ headers: {} })).toMatch(/^400 .*headers_missing/);
  });
});

test('a delivery that this secret has signed verifies, whichever other secret has signed it too', async () => {
  expect(await deliver({ keys: [OTHER_KEY, KEY] })).toMatch(/^204 .*verified/);
});

test.each([-299, 0, 299])('a delivery signed %i seconds from now verifies and is printed', async (seconds) => {
  expect(await deliver({ at: new Date(NOW.getTime() + seconds * 1_000) })).toMatch(/^204 .*verified/);
  expect(printed.at(-1)).toContain('"type": "webhook.ping"');
});

test('a port that is taken is refused, and the way to give another one is named', async () => {
  const taken = createServer();
  await once(taken.listen(0, '127.0.0.1'), 'listening');
  const { port } = taken.address() as AddressInfo;
  const refused = open(createServer(), port);
  await expect(refused).rejects.toThrow(new RegExp(`^Port ${port} cannot be used: .*EADDRINUSE.* --port <port>`));
  taken.close();
});
