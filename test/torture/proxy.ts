/**
 * The network between the service's processes and their servers, by toxiproxy: each connection passes a proxy of its
 * own, which can be cut, slowed and reset.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { localDirectory } from '../../process/place.ts';
import { freePort } from '../../scripts/stack/port.ts';

const VERSION = 'v2.12.0';
const PROGRAM = path.join(localDirectory, 'bin', `toxiproxy-${VERSION}`, 'server');
const BUILD_TIMEOUT_MS = 300_000;
const START_TIMEOUT_MS = 10_000;
const POLL_MS = 50;
const CALL_TIMEOUT_MS = 2_000;

/** Who talks to whom. */
export const LINKS = ['api-postgres', 'worker-postgres', 'api-temporal', 'worker-temporal'] as const;
export type Link = (typeof LINKS)[number];

/** What can be done to a link. `cut`: bytes are swallowed; `slow`: half a second each way; `reset`: RST. */
export const TOXICS = ['cut', 'slow', 'reset'] as const;
export type Toxic = (typeof TOXICS)[number];

const SLOW_MS = 500;
const TOXIC_SETTINGS: Record<Toxic, { readonly type: string; readonly attributes: object }> = {
  cut: { type: 'timeout', attributes: { timeout: 0 } },
  slow: { type: 'latency', attributes: { latency: SLOW_MS, jitter: SLOW_MS / 2 } },
  reset: { type: 'reset_peer', attributes: { timeout: 0 } },
};

export type Network = {
  /** The port on 127.0.0.1 on which a link listens. */
  port(link: Link): number;
  poison(link: Link, toxic: Toxic): Promise<void>;
  /** Takes every toxic of the link away. */
  heal(link: Link): Promise<void>;
  close(): void;
};

/**
 * @param upstream the port that each link leads to
 * @throws Error when the program is missing and cannot be built with Go
 */
export async function startNetwork(upstream: Readonly<Record<Link, number>>): Promise<Network> {
  const program = await acquireToxiproxy();
  const adminPort = await freePort();
  const child = spawn(program, ['-host', '127.0.0.1', '-port', String(adminPort)], { stdio: 'ignore' });
  const admin = (method: string, route: string, body?: object) => callAdmin(adminPort, method, route, body);
  await untilAnswering(child, admin);
  const ports = new Map<Link, number>();
  for (const link of LINKS) {
    const port = await freePort();
    const proxy = { name: link, listen: `127.0.0.1:${port}`, upstream: `127.0.0.1:${upstream[link]}`, enabled: true };
    await admin('POST', '/proxies', proxy);
    ports.set(link, port);
  }
  const poisoned = new Map<Link, Toxic[]>();
  return {
    port: (link) => ports.get(link) ?? 0,
    async poison(link, toxic) {
      const { type, attributes } = TOXIC_SETTINGS[toxic];
      for (const stream of ['upstream', 'downstream'])
        await admin('POST', `/proxies/${link}/toxics`, { name: `${toxic}-${stream}`, type, stream, attributes });
      poisoned.set(link, [...(poisoned.get(link) ?? []), toxic]);
    },
    async heal(link) {
      for (const toxic of poisoned.get(link) ?? [])
        for (const stream of ['upstream', 'downstream'])
          await admin('DELETE', `/proxies/${link}/toxics/${toxic}-${stream}`);
      poisoned.delete(link);
    },
    close: () => void child.kill('SIGKILL'),
  };
}

async function callAdmin(port: number, method: string, route: string, body?: object): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${port}${route}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
  });
  // A toxic that is there already is what was asked for.
  if (!answer.ok && answer.status !== 409 && answer.status !== 404)
    throw new Error(`toxiproxy answered ${answer.status} to ${method} ${route}`);
}

async function untilAnswering(
  child: ChildProcess,
  admin: (method: string, route: string) => Promise<void>,
): Promise<void> {
  const end = Date.now() + START_TIMEOUT_MS;
  for (;;) {
    const answers = await admin('GET', '/version').then(
      () => true,
      () => false,
    );
    if (answers) return;
    if (child.exitCode !== null || Date.now() > end) throw new Error('toxiproxy did not start');
    await delay(POLL_MS);
  }
}

async function acquireToxiproxy(): Promise<string> {
  if (existsSync(PROGRAM)) return PROGRAM;
  await mkdir(path.dirname(PROGRAM), { recursive: true });
  const source = `github.com/Shopify/toxiproxy/v2/cmd/server@${VERSION}`;
  try {
    await promisify(execFile)('go', ['install', source], {
      env: { ...process.env, GOBIN: path.dirname(PROGRAM) },
      timeout: BUILD_TIMEOUT_MS,
    });
  } catch (error) {
    throw new Error('toxiproxy could not be built: faults of the network need Go.', { cause: error });
  }
  return PROGRAM;
}
