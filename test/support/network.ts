/**
 * The network between the service's processes and their servers. Each link goes through a proxy (toxiproxy), which can
 * cut, slow and reset its connections.
 */
import { spawn } from 'node:child_process';
import { freePort } from '../../scripts/stack/port.ts';
import { buildWithGo } from './go-program.ts';
import { stretched } from './patience.ts';
import { until } from './wait.ts';

const TOXIPROXY = { source: 'github.com/Shopify/toxiproxy/v2/cmd/server', version: 'v2.12.0', name: 'toxiproxy' };
const START_TIMEOUT_MS = stretched(10_000);
const POLL_MS = 50;
const CALL_TIMEOUT_MS = stretched(2_000);

/** Who is connected to what. */
export const LINKS = ['api-postgres', 'worker-postgres', 'api-temporal', 'worker-temporal'] as const;
export type Link = (typeof LINKS)[number];

/** What can be done to a link. `cut`: bytes are dropped; `slow`: half a second in each direction; `reset`: RST. */
export const TOXICS = ['cut', 'slow', 'reset'] as const;
export type Toxic = (typeof TOXICS)[number];

const SLOW_MS = 500;
const TOXIC_SETTINGS: Record<Toxic, { readonly type: string; readonly attributes: object }> = {
  cut: { type: 'timeout', attributes: { timeout: 0 } },
  slow: { type: 'latency', attributes: { latency: SLOW_MS, jitter: SLOW_MS / 2 } },
  reset: { type: 'reset_peer', attributes: { timeout: 0 } },
};
const STREAMS = ['upstream', 'downstream'] as const;

export type Network = {
  /** The port on 127.0.0.1 at which a link begins. */
  port(link: Link): number;
  poison(link: Link, toxic: Toxic): Promise<void>;
  /** Removes every toxic of the link. */
  heal(link: Link): Promise<void>;
  close(): void;
};

/**
 * @param program the path of toxiproxy
 * @param ports where PostgreSQL and Temporal listen
 * @param onDisturbance is called when a link was poisoned or healed
 */
export async function startNetwork(
  program: string,
  ports: Readonly<Record<'postgres' | 'temporal', number>>,
  onDisturbance: () => void,
): Promise<Network> {
  const adminPort = await freePort();
  const child = spawn(program, ['-host', '127.0.0.1', '-port', String(adminPort)], { stdio: 'ignore' });
  const admin = (method: string, route: string, body?: object) => callAdmin(adminPort, method, route, body);
  const answers = () =>
    admin('GET', '/version').then(
      () => true,
      () => false,
    );
  await until('answer of toxiproxy', answers, { timeoutMs: START_TIMEOUT_MS, everyMs: POLL_MS });
  const begin = new Map<Link, number>();
  for (const link of LINKS) {
    const port = await freePort();
    const upstream = `127.0.0.1:${link.endsWith('-postgres') ? ports.postgres : ports.temporal}`;
    await admin('POST', '/proxies', { name: link, listen: `127.0.0.1:${port}`, upstream, enabled: true });
    begin.set(link, port);
  }
  const poisoned = new Map<Link, Toxic[]>();
  return {
    port: (link) => begin.get(link) ?? 0,
    async poison(link, toxic) {
      const { type, attributes } = TOXIC_SETTINGS[toxic];
      poisoned.set(link, [...(poisoned.get(link) ?? []), toxic]);
      for (const stream of STREAMS)
        await admin('POST', `/proxies/${link}/toxics`, { name: `${toxic}-${stream}`, type, stream, attributes });
      onDisturbance();
    },
    async heal(link) {
      for (const toxic of poisoned.get(link) ?? [])
        for (const stream of STREAMS) await admin('DELETE', `/proxies/${link}/toxics/${toxic}-${stream}`);
      poisoned.delete(link);
      onDisturbance();
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
  // A toxic that exists is not added again, and one that is gone needs no removal.
  if (!answer.ok && answer.status !== 409 && answer.status !== 404)
    throw new Error(`toxiproxy answered ${answer.status} to ${method} ${route}`);
}

/** The path of toxiproxy; undefined when it cannot be built: that needs Go. */
export const acquireToxiproxy = (): Promise<string | undefined> => buildWithGo(TOXIPROXY).catch(() => undefined);
