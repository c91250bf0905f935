/** The guard against requests to private addresses (contract §11). A canary server on this machine must get none. */
import { EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import { test as base, describe, expect, vi } from 'vitest';
import { createGuardedHttp, type GuardOptions, keepConnections } from '../../activities/providers/guarded-http.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { FILE } from '../support/fixture.ts';
import { collectGarbage } from '../support/garbage.ts';
import { stretched, WAIT } from '../support/patience.ts';
import { words } from '../support/words.ts';

const PUBLIC_ADDRESS = '93.184.216.34';
const readFixture = (name: string) => readFileSync(path.join(import.meta.dirname, '..', 'fixtures', name), 'utf8');
const CERTIFICATE = readFixture('partner.crt.pem');
const OK: http.RequestListener = (_, response) => response.end('ok');

/** Two servers on this machine, with TLS and without. What they counted is reset after each test. */
async function startCanary() {
  const listener: http.RequestListener = (request, response) => {
    canary.requests += 1;
    canary.answer(request, response);
  };
  const servers = [
    http.createServer(listener),
    https.createServer({ key: readFixture('partner.key.pem'), cert: CERTIFICATE }, listener),
  ];
  for (const server of servers) {
    server.on('connection', () => {
      canary.connections += 1;
    });
    // IPv4 and IPv6, so that every spelling of this machine reaches it.
    await new Promise<void>((resolve) => server.listen(0, '::', resolve));
  }
  const [port = 0, securePort = 0] = servers.map((server) => (server.address() as AddressInfo).port);
  const canary = {
    port,
    securePort,
    url: `http://127.0.0.1:${port}/`,
    connections: 0,
    requests: 0,
    dialled: [] as string[],
    answer: OK,
    /** A connection that claims to have reached the address it should dial (or `claimed`), but reaches the canary. */
    dial:
      (claimed?: string): NonNullable<GuardOptions['dial']> =>
      (address, dialledPort) => {
        canary.dialled.push(`${address}:${dialledPort}`);
        const socket = net.connect(dialledPort === 443 || dialledPort === securePort ? securePort : port, '127.0.0.1');
        Object.defineProperty(socket, 'remoteAddress', { get: () => claimed ?? address });
        return socket;
      },
  };
  const close = async (): Promise<void> => {
    for (const server of servers) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  };
  return { canary, close };
}

// biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
const test = base.extend('canary', FILE, async ({}, { onCleanup }) => {
  const { canary, close } = await startCanary();
  onCleanup(close);
  return canary;
});
test.afterEach(({ canary }) => {
  Object.assign(canary, { connections: 0, requests: 0, dialled: [], answer: OK });
});

const resolveTo =
  (...addresses: string[]): GuardOptions['resolve'] =>
  async () =>
    addresses;
const guard = (options: Partial<GuardOptions> = {}) =>
  createGuardedHttp({ rules: { allowLocal: false }, resolve: resolveTo(PUBLIC_ADDRESS), ...options });
const post = (url: string, options: Partial<GuardOptions> = {}) =>
  guard(options).post(url, Buffer.from('{"id":1}'), { 'webhook-id': '1' });
const SUBSCRIBER = 'https://hooks.partner.example/';
const postToSubscriber = (options: Partial<GuardOptions>) => post(SUBSCRIBER, options);

/** Spellings of this machine, of private networks and of metadata services. */
const HOSTS = [
  ...words(`
    127.0.0.1 127.1 127.0.1 127.0.0.1. 0 0.0.0.0 2130706433 017700000001 0x7f000001 0x7f.1 0x7f.0.0.1 0177.0.0.1
    0177.1 127.00.00.01 0x7F.0X0.0x0.0x1
    ①②⑦.⓪.⓪.① 127。0。0。1 127．0．0．1 %31%32%37.0.0.1 127.0.0.1%2e 127.255.255.254 [::] [::1] [0:0:0:0:0:0:0:1]
    [::ffff:127.0.0.1] [::ffff:7f00:1] [::FFFF:7F00:1]
    [::127.0.0.1] [::7f00:1] [0:0:0:0:0:ffff:127.0.0.1] [::ffff:0:127.0.0.1] [64:ff9b::7f00:1] [64:ff9b::127.0.0.1]
    [64:ff9b:1::7f00:1] [2002:7f00:1::] [2001:0:7f00:1::] [100::1]
    localhost LOCALHOST LocalHost localhost. a.localhost localhost.localdomain ip6-localhost loopback ⓛⓞⓒⓐⓛⓗⓞⓢⓣ
    169.254.169.254 0xa9fea9fe 2852039166 025177524776 0251.0376.0251.0376 169.254.43518 [::ffff:169.254.169.254]
    [::ffff:a9fe:a9fe] [fd00:ec2::254] 169.254.170.2 169.254.170.23
    metadata metadata.google.internal METADATA.GOOGLE.INTERNAL. metadata.goog metadata.amazonaws.com instance-data
    100.100.100.200 192.0.0.192 168.63.129.16
    10.0.0.1 10.1 0xa000001 172.16.0.1 172.31.255.254 192.168.0.1 0300.0250.0.1 192.168.1 100.64.0.1 198.18.0.1
    224.0.0.1 255.255.255.255 [fc00::1] [fd12:3456::1]
    [fe80::1] [fe80::1%25lo] [fec0::1] [ff02::1] [2001:db8::1] [3fff::1] db.internal printer.local router.lan
    nas.home.arpa api.svc.cluster.local kubernetes.default.svc
  `),
  ...[
    'ok.example@127.0.0.1',
    'ok.example%2f@127.0.0.1',
    'ok.example\\@127.0.0.1',
    'ok.example#@127.0.0.1',
    '127.0.0.1\t',
    '127.0.0.1\\@ok.example',
    '127.1.1.1:80\\@127.2.2.2',
    'user:pass@localhost',
  ],
];

describe('no connection is made', () => {
  test('no connection for any of 100 spellings of a private target, whether http or https', async ({ canary }) => {
    expect(new Set(HOSTS).size).toBeGreaterThanOrEqual(100);
    const outcomes: string[] = [];
    for (const host of HOSTS) {
      for (const url of [`https://${host}:${canary.securePort}/`, `http://${host}:${canary.port}/`]) {
        // The system's resolver may return the host itself. That must not help.
        const { error, status } = await post(url, { resolve: async (name) => [name] });
        if (error !== 'blocked_target' || status !== null) outcomes.push(`${url} ${error}`);
      }
    }
    expect(outcomes).toEqual([]);
    expect([canary.connections, canary.requests]).toEqual([0, 0]);
  });

  test.for<[string, string[] | Error, error: string]>([
    ['a private address', ['10.0.0.7'], 'blocked_target'],
    ['loopback', ['127.0.0.1'], 'blocked_target'],
    ['loopback of IPv6', ['::1'], 'blocked_target'],
    ['loopback as IPv4 in IPv6', ['::ffff:127.0.0.1'], 'blocked_target'],
    ['one public and one private address', [PUBLIC_ADDRESS, '127.0.0.1'], 'blocked_target'],
    [
      'a private address behind many public ones',
      [PUBLIC_ADDRESS, '2606:4700::1111', '1.1.1.1', '169.254.169.254'],
      'blocked_target',
    ],
    ['something that is not an address', ['not-an-address'], 'blocked_target'],
    ['no address', [], 'dns'],
    ['no answer but an error', new Error('NXDOMAIN'), 'dns'],
  ])('no connection to a name with %s', async ([_, found, error], { canary }) => {
    const resolve = found instanceof Error ? () => Promise.reject(found) : resolveTo(...found);
    const outcome = await postToSubscriber({ resolve, dial: canary.dial() });
    expect(outcome).toMatchObject({ status: null, error });
    expect([canary.connections, canary.dialled]).toEqual([0, []]);
  });

  test('no connection if the name server does not answer within two seconds, also while memory is collected', async ({
    canary,
    onTestFinished,
  }) => {
    const collecting = setInterval(collectGarbage, 100);
    onTestFinished(() => clearInterval(collecting));
    const outcome = await postToSubscriber({
      resolve: () => new Promise(() => undefined),
      dial: canary.dial(),
    });
    expect(outcome.error).toBe('dns');
    expect(outcome.durationMs).toBeLessThan(stretched(10_000));
    expect(canary.connections).toBe(0);
  });

  test('no connection to a private address under a public name, when the local sandbox allows loopback', async ({
    canary,
  }) => {
    expect(
      await post(`http://private.partner.example:${canary.port}/`, {
        rules: { allowLocal: true },
        resolve: resolveTo('10.0.0.7'),
      }),
    ).toMatchObject({ error: 'blocked_target' });
    expect(canary.connections).toBe(0);
  });
});

describe('nothing is sent', () => {
  test.for([
    ['loopback', '127.0.0.1'],
    ['another public address', '93.184.216.35'],
    ['nowhere', ''],
  ])(
    'no request over a connection that reached %s instead of the address that was checked',
    async ([_, reached], { canary }) => {
      const outcome = await postToSubscriber({ dial: canary.dial(reached), ca: CERTIFICATE });
      expect(outcome).toMatchObject({ status: null, error: 'blocked_target' });
      expect(canary.requests).toBe(0);
    },
  );

  test('no request when the name has a private address at the next attempt', async ({ canary }) => {
    const meanings = [[PUBLIC_ADDRESS], ['127.0.0.1']];
    const http = guard({ resolve: async () => meanings.shift() ?? [], dial: canary.dial(), ca: CERTIFICATE });
    const outcomes = [
      await http.post(SUBSCRIBER, Buffer.from('{}'), {}),
      await http.post(SUBSCRIBER, Buffer.from('{}'), {}),
    ];
    expect(outcomes).toMatchObject([{ status: 200 }, { status: null, error: 'blocked_target' }]);
    expect([canary.connections, canary.requests]).toEqual([1, 1]);
  });

  test('no request to a certificate of an unknown authority, or of another name', async ({ canary }) => {
    expect(await postToSubscriber({ dial: canary.dial() })).toMatchObject({
      status: null,
      error: 'tls',
    });
    expect(await post('https://other.partner.example/', { dial: canary.dial(), ca: CERTIFICATE })).toMatchObject({
      status: null,
      error: 'tls',
    });
    expect(canary.requests).toBe(0);
  });
});

describe('the limits of an answer', () => {
  const local = { rules: { allowLocal: true } };

  test.for([301, 302, 303, 307, 308])(
    '%i is a failure, and the redirect is not followed',
    async (status, { canary }) => {
      canary.answer = (_, response) => response.writeHead(status, { location: 'http://169.254.169.254/' }).end();
      expect(await post(canary.url, local)).toMatchObject({ status, error: 'redirect' });
      expect([canary.connections, canary.requests]).toEqual([1, 1]);
    },
  );

  test.for<[string, (response: http.ServerResponse) => void, object]>([
    [
      'an endless body is read up to 16 KiB',
      (response) => {
        const timer = setInterval(() => response.write(Buffer.alloc(8_192)), 1);
        response.once('close', () => clearInterval(timer));
      },
      { status: 200, error: null, bytes: 16_384 },
    ],
    [
      'endless headers are too large',
      ({ socket }) => {
        socket?.write('HTTP/1.1 200 OK\r\n');
        socket?.write(`x: ${'a'.repeat(9_000)}\r\n`.repeat(4));
      },
      { status: null, error: 'response_too_large' },
    ],
    [
      'an answer that is not HTTP is invalid',
      ({ socket }) => void socket?.end('SSH-2.0-OpenSSH_9.6\r\n'),
      { status: null, error: 'invalid_response' },
    ],
    [
      'a connection that breaks is lost',
      ({ socket }) => void socket?.destroy(),
      { status: null, error: 'connection_lost' },
    ],
  ])('%s', async ([_name, answer, outcome], { canary }) => {
    canary.answer = (_request, response) => answer(response);
    expect(await post(canary.url, local)).toMatchObject(outcome);
  });

  test.for<[string, (response: http.ServerResponse) => void]>([
    ['drips', (response) => void setInterval(() => response.write('.'), 20).unref()],
    ['never begins', () => undefined],
    ['begins and stops', (response) => void response.write('.')],
    ['has only 1xx statuses', (response) => void setInterval(() => response.writeProcessing(), 5).unref()],
  ])('an answer that %s times out', async ([_, begin], { canary }) => {
    canary.answer = (_request, response) => begin(response);
    const outcome = await post(canary.url, { ...local, timeoutMs: 700 });
    expect(outcome.error).toBe('timeout');
    expect(outcome.durationMs).toBeLessThan(stretched(10_000));
  });

  test('204 is a success, also when its head announces a body', async ({ canary }) => {
    canary.answer = (_, { socket }) => void socket?.write('HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\nok');
    expect(await post(canary.url, local)).toMatchObject({ status: 204, error: null, bytes: 0 });
  });

  test('a closed port refuses the connection', async () => {
    expect(await post(`http://127.0.0.1:${await freePort()}/`, local)).toMatchObject({
      status: null,
      error: 'connect',
    });
  });
});

describe('a public target', () => {
  test('is reached once, over TLS verified against its name, with the given bytes and headers', async ({ canary }) => {
    let seen: { headers: http.IncomingHttpHeaders; url: string | undefined; body: string } | undefined;
    canary.answer = (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        seen = { headers: request.headers, url: request.url, body: Buffer.concat(chunks).toString() };
        response.writeHead(204, { 'set-cookie': 'a=b' }).end();
      });
    };
    process.env['https_proxy'] = `http://127.0.0.1:${canary.port}`;
    const outcome = await post('https://hooks.partner.example/in?key=1', { dial: canary.dial(), ca: CERTIFICATE });
    delete process.env['https_proxy'];
    expect(outcome).toMatchObject({ status: 204, error: null, bytes: 0 });
    expect(canary.dialled).toEqual([`${PUBLIC_ADDRESS}:443`]);
    expect([canary.connections, canary.requests]).toEqual([1, 1]);
    expect(seen).toMatchObject({ url: '/in?key=1', body: '{"id":1}' });
    expect(seen?.headers).toEqual({
      host: 'hooks.partner.example',
      connection: 'close',
      'content-length': '8',
      'webhook-id': '1',
    });
  });

  test('is reached at its second address when the first does not answer', async ({ canary }) => {
    const refused: NonNullable<GuardOptions['dial']> = (address, dialledPort) =>
      address === PUBLIC_ADDRESS ? net.connect(1, '127.0.0.1') : canary.dial()(address, dialledPort);
    expect(
      await postToSubscriber({
        resolve: resolveTo(PUBLIC_ADDRESS, '1.1.1.1'),
        dial: refused,
        ca: CERTIFICATE,
      }),
    ).toMatchObject({ status: 200 });
    expect(canary.dialled).toEqual(['1.1.1.1:443']);
  });

  test('is reached at its third address when the first two never answer, and those connections are closed', async ({
    canary,
  }) => {
    const silent: net.Socket[] = [];
    const outcome = await postToSubscriber({
      resolve: resolveTo(PUBLIC_ADDRESS, '1.0.0.1', '1.1.1.1'),
      dial: (address, port) => {
        if (address === '1.1.1.1') return canary.dial()(address, port);
        const socket = new net.Socket();
        silent.push(socket);
        return socket;
      },
      ca: CERTIFICATE,
    });
    expect(outcome).toMatchObject({ status: 200, error: null });
    expect(silent.map(({ destroyed }) => destroyed)).toEqual([true, true]);
  });

  test('is reached at an address that accepts a connection late, also if another one refuses it', async ({
    canary,
  }) => {
    const late = (address: string, port: number): net.Socket => {
      const socket = canary.dial()(address, port);
      const emit = socket.emit.bind(socket);
      vi.spyOn(socket, 'emit').mockImplementation((event: string, ...given: unknown[]) => {
        if (event !== 'connect') return emit(event, ...given);
        setTimeout(() => emit(event), 600);
        return true;
      });
      return socket;
    };
    expect(
      await postToSubscriber({
        resolve: resolveTo(PUBLIC_ADDRESS, '1.1.1.1'),
        dial: (address, port) => (address === PUBLIC_ADDRESS ? late(address, port) : net.connect(1, '127.0.0.1')),
        ca: CERTIFICATE,
      }),
    ).toMatchObject({ status: 200, error: null });
  });
});

test('what was answered is not kept until the request would have timed out', async ({ canary }) => {
  const send = async () =>
    (await postToSubscriber({ ca: CERTIFICATE, dial: canary.dial(), timeoutMs: 600_000 })).sha256;
  const digest = await send().then((sha256) => new WeakRef(sha256 ?? {}));
  await vi.waitUntil(() => {
    collectGarbage();
    return digest.deref() === undefined;
  }, WAIT);
});

describe('a kept connection', () => {
  const keeping = (options: Partial<GuardOptions>) => {
    const guarded = guard({ ca: CERTIFICATE, ...options });
    const kept = keepConnections();
    return { kept, post: (url: string) => guarded.post(url, Buffer.from('{"id":1}'), { 'webhook-id': '1' }, kept) };
  };

  test('serves the next request to its subscriber, and is checked when it is opened', async ({ canary }) => {
    const { kept, post: send } = keeping({ dial: canary.dial() });
    for (let n = 0; n < 3; n += 1) expect(await send(SUBSCRIBER)).toMatchObject({ status: 200, error: null });
    expect([canary.requests, canary.connections]).toEqual([3, 1]);
    kept.close();
    const refused = keeping({ dial: canary.dial('10.0.0.7') });
    expect(await refused.post(SUBSCRIBER)).toMatchObject({ status: null, error: 'blocked_target' });
    expect(canary.requests).toBe(3);
  });

  test('serves no other origin', async ({ canary }) => {
    const { kept, post: send } = keeping({ dial: canary.dial() });
    await send(SUBSCRIBER);
    await send(`https://hooks.partner.example:${canary.securePort}/`);
    expect(canary.connections).toBe(2);
    kept.close();
  });

  test('is replaced by a new, checked one when the subscriber has closed it', async ({ canary }) => {
    canary.answer = (request, response) => {
      response.end('ok', () => setImmediate(() => request.socket.destroy()));
    };
    const { kept, post: send } = keeping({ dial: canary.dial() });
    for (let n = 0; n < 3; n += 1) expect(await send(SUBSCRIBER)).toMatchObject({ status: 200 });
    expect([canary.requests, canary.dialled.length]).toEqual([3, 3]);
    kept.close();
  });

  test('does not fail the attempt when it breaks on reuse', async ({ canary }) => {
    let first = true;
    canary.answer = (_, response) => {
      if (canary.requests === 2 && first) {
        first = false;
        response.socket?.destroy();
        return;
      }
      response.end('ok');
    };
    const { kept, post: send } = keeping({ dial: canary.dial() });
    await send(SUBSCRIBER);
    expect(await send(SUBSCRIBER)).toMatchObject({ status: 200, error: null, lostMs: expect.any(Number) });
    expect([canary.requests, canary.connections]).toEqual([3, 2]);
    kept.close();
  });

  test('is not followed by another one when it breaks after the answer has begun: the subscriber has the request', async ({
    canary,
  }) => {
    canary.answer = (_, response) => {
      if (canary.requests === 1) return void response.end('ok');
      response.writeHead(200, { 'content-length': '100' }).write('begun', () => response.socket?.destroy());
    };
    const { kept, post: send } = keeping({ dial: canary.dial() });
    await send(SUBSCRIBER);
    expect(await send(SUBSCRIBER)).toMatchObject({ status: null, error: 'connection_lost', lostMs: null });
    expect([canary.requests, canary.connections]).toEqual([2, 1]);
    kept.close();
  });

  test('is forgotten when the subscriber closes it, and the one that is idle for longest is closed for the 257th', () => {
    const kept = keepConnections();
    const connections = Array.from({ length: 258 }, () => ({
      socket: Object.assign(new EventEmitter(), { destroyed: false, destroy: vi.fn() }),
      client: { destroyed: false, destroy: async () => undefined },
    }));
    for (const [index, connection] of connections.entries()) kept.keep(`origin ${index}`, connection as never);
    expect(connections.filter(({ socket }) => socket.destroy.mock.calls.length > 0)).toEqual(connections.slice(0, 2));
    connections[5]?.socket.emit('close');
    expect([kept.take('origin 0'), kept.take('origin 5'), kept.take('origin 6')]).toEqual([
      undefined,
      undefined,
      connections[6],
    ]);
    kept.close();
  });

  test('is not kept after an answer that was not read to its end', async ({ canary }) => {
    canary.answer = (_, response) => response.end(Buffer.alloc(64 * 1024));
    const { kept, post: send } = keeping({ dial: canary.dial() });
    await send(SUBSCRIBER);
    await send(SUBSCRIBER);
    expect(canary.connections).toBe(2);
    kept.close();
  });
});
