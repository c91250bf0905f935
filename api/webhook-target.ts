/**
 * Whether a subscription may have this URL (contract §11). The name is looked up for the partner's sake: who names a
 * private host learns it here. A name that does not resolve is accepted, and what counts is checked at each connection.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { ValidationError } from '../domain/error.ts';
import { admitsAddress, isLoopbackHost, targetFault, targetHost } from '../domain/webhook-target.ts';
import type { ApiDeps } from './deps.ts';

const LOOKUP_TIMEOUT_MS = 2_000;

/** @throws ValidationError on `url` */
export async function requireTarget(deps: ApiDeps, url: string): Promise<void> {
  const rules = { allowLocal: deps.config.webhookAllowLocalTargets };
  const fault = targetFault(url, rules) ?? (await addressFault(deps, targetHost(new URL(url)), rules.allowLocal));
  if (fault) throw new ValidationError([{ field: 'url', rule: fault }]);
}

async function addressFault(deps: ApiDeps, host: string, allowLocal: boolean): Promise<string | undefined> {
  if (allowLocal && isLoopbackHost(host)) return undefined;
  const unknown: readonly string[] = [];
  const waiting = new AbortController();
  const timeout = delay(LOOKUP_TIMEOUT_MS, unknown, { signal: waiting.signal }).catch(() => unknown);
  const addresses = await Promise.race([deps.resolveHost(host).catch(() => unknown), timeout]);
  waiting.abort();
  return addresses.every((address) => admitsAddress(address, { allowLocal }))
    ? undefined
    : 'must name a host on the public internet';
}
