/** Runs the receivers of docs/guides/webhooks.md exactly as the page shows them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { signWebhook } from '../../activities/webhook-signature.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { stretched } from '../support/patience.ts';
import { readSource } from '../support/source.ts';
import { until } from '../support/webhook.ts';

const KEY = Buffer.alloc(32, 7);
const ID = '019ad3f0-5c1b-7d3e-9a6f-0d5a7c1e2b40';
const BODY = Buffer.from(JSON.stringify({ id: ID, type: 'webhook.ping', data: {} }));
const LINES_MAX = 20;

const codeOf = (language: string): string => {
  const page = readSource('docs/guides/webhooks.md');
  const blocks = [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].filter(([, tag]) => tag === language);
  expect(blocks).toHaveLength(1);
  return blocks[0]?.[2] ?? '';
};

describe.each([
  ['js', process.execPath, 'receiver.mjs'],
  ['python', 'python3', 'receiver.py'],
])('the receiver in %s', (language, program, file) => {
  let folder: string;
  let receiver: ChildProcess;
  let url: string;
  let printed = '';

  beforeAll(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'webhook-page-'));
    await writeFile(path.join(folder, file), codeOf(language));
    const port = await freePort();
    url = `http://127.0.0.1:${port}/`;
    const env = {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      WEBHOOK_SECRET: `whsec_${KEY.toString('base64')}`,
      PORT: String(port),
    };
    receiver = spawn(program, [path.join(folder, file)], { env, stdio: ['ignore', 'pipe', 'ignore'] });
    receiver.stdout?.on('data', (chunk: Buffer) => {
      printed += chunk.toString();
    });
    await until(
      () =>
        fetch(url, { method: 'POST' }).then(
          () => true,
          () => false,
        ),
      (up) => up,
    );
  });
  afterAll(async () => {
    receiver.kill();
    await once(receiver, 'exit');
    await rm(folder, { recursive: true });
  });

  type Delivery = { seconds?: number; keys?: Buffer[]; body?: Buffer | ReadableStream };
  const deliver = async (options: Delivery = {}): Promise<number> => {
    const timestamp = Math.floor(Date.now() / 1_000) + (options.seconds ?? 0);
    const signature = signWebhook(options.keys ?? [KEY], { id: ID, timestamp, body: BODY });
    const headers = { 'webhook-id': ID, 'webhook-timestamp': String(timestamp), 'webhook-signature': signature };
    return (await fetch(url, { method: 'POST', headers, body: options.body ?? BODY, duplex: 'half' })).status;
  };

  test('refuses a changed body, another secret, and a time far in the past or in the future', async () => {
    expect(await deliver({ body: Buffer.concat([BODY, Buffer.from(' ')]) })).toBe(400);
    expect(await deliver({ keys: [Buffer.alloc(32, 8)] })).toBe(400);
    expect(await deliver({ seconds: -400 })).toBe(400);
    expect(await deliver({ seconds: 400 })).toBe(400);
    expect(printed).toBe('');
  });

  test('accepts a delivery of this service, also while two secrets sign it', async () => {
    expect(await deliver()).toBe(204);
    expect(await deliver({ keys: [Buffer.alloc(32, 8), KEY] })).toBe(204);
    await until(
      () => printed,
      (text) => text === `${ID} webhook.ping\n`.repeat(2),
    );
  });

  // Python's server reads no chunks.
  if (language === 'js')
    test('accepts a delivery in chunks, as a proxy may send it, and no larger one', async () => {
      expect(await deliver({ body: new Blob([BODY]).stream() })).toBe(204);
      expect(await deliver({ body: new Blob([BODY, Buffer.alloc(2 ** 20)]).stream() })).toBe(400);
    });

  test('outlives a request that hangs and breaks off', async () => {
    const broken = connect(Number(new URL(url).port), '127.0.0.1').resume();
    broken.write('POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nabc');
    await once(broken, 'connect');
    expect(await deliver()).toBe(204);
    broken.end();
    await once(broken, 'close');
    expect(await deliver()).toBe(204);
  });

  test.each([2 ** 31, -1])('reads at most 1 MiB of a body whose length is given as %i', async (length) => {
    const endless = connect(Number(new URL(url).port), '127.0.0.1');
    endless.write(`POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${length}\r\n\r\n`);
    // The other one answers by the head alone, and closes: a body that still came would reset the connection.
    if (language === 'python') endless.write(Buffer.alloc(2 ** 20));
    const signal = AbortSignal.timeout(stretched(5_000));
    const [answer] = await once(endless, 'data', { signal }).finally(() => endless.destroy());
    expect(String(answer)).toMatch(/^HTTP\/1\.[01] 4/);
    expect(await deliver()).toBe(204);
  });

  test('does not start with an empty secret, with which anybody could sign', async () => {
    const env = { ...process.env, WEBHOOK_SECRET: '', PORT: '0' };
    const { failed, timedOut } = await execa(program, [path.join(folder, file)], {
      env,
      reject: false,
      timeout: stretched(5_000),
    });
    expect({ failed, timedOut }).toEqual({ failed: true, timedOut: false });
  });

  test(`has at most ${LINES_MAX} lines`, () => {
    expect(codeOf(language).trim().split('\n').length).toBeLessThanOrEqual(LINES_MAX);
  });
});
