/**
 * Whether a host opens connections at all. `fetch` does not tell a slow answer from an address that swallows packets.
 */
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { TIMER_MAX_MS } from './retry.ts';

const PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

/**
 * Aborts when the time is over and no new connection to the host has opened. One is tried in the second half of the
 * time, so that a usual request costs none. A refusal is no silence: `fetch` reports it.
 *
 * @param ended ends the watch
 */
export function connectTimeout(baseUrl: string, timeoutMs: number, ended: AbortSignal): AbortSignal {
  const silence = new AbortController();
  const watch = async () => {
    const halfMs = Math.min(timeoutMs / 2, TIMER_MAX_MS);
    await delay(halfMs, undefined, { signal: ended });
    if (!(await opensConnection(baseUrl, halfMs, ended))) silence.abort();
  };
  watch().catch(() => undefined);
  return silence.signal;
}

/** True also for a refusal. */
function opensConnection(baseUrl: string, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
  const { hostname, port, protocol } = new URL(baseUrl);
  // An IPv6 address has brackets in a URL.
  const host = hostname.replace(/^\[|\]$/g, '');
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port) || (PORTS[protocol] ?? 0), signal });
    const end = (isSilent: boolean) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(!isSilent);
    };
    const timer = setTimeout(end, timeoutMs, true);
    socket.once('connect', () => end(false)).once('error', () => end(false));
  });
}
