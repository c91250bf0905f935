/**
 * PostgreSQL fails over under load: callers settle, the primary is killed with SIGKILL, its standby is promoted, and
 * the address of the database leads to it. Shortly before, the standby stops to receive, as when the network is slow:
 * what was committed then is lost, unless a commit waits for the standby.
 */
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { cardSettlementBody } from '../../scripts/sandbox/partner.ts';
import { postgresProgram } from '../../scripts/stack/postgres-program.ts';
import { queryOnce } from '../support/connection.ts';
import { type Forwarder, startForwarder } from '../support/forwarder.ts';
import { type ProcessStack, startProcessStack } from '../support/process-stack.ts';
import { SERVICE_ENV } from '../support/provider-event.ts';
import { type Mode, startStandby } from '../support/standby.ts';
import { askUntil, until } from '../support/wait.ts';
import { checkAtRest } from '../torture/check.ts';
import { createHttpClient, type HttpClient } from '../torture/client.ts';
import { authorize, createRecipient, createTenant, type Tenant } from '../torture/tenant.ts';

export type FailoverReport = {
  readonly mode: Mode;
  /** Settlements that were accepted (202) before the kill. */
  readonly accepted: number;
  /** Accepted settlements that the new primary does not have. */
  readonly lost: number;
  /** Of the lost ones, those that got another id when they were sent again with their key. */
  readonly changed: number;
  /**
   * Settlements that still waited for their payment after a minute: the provider's report is lost. It reports again.
   */
  readonly unreported: number;
  /** From the kill until the first settlement was accepted. */
  readonly downSeconds: number;
  /** Of all keys that were ever sent, how many settled. */
  readonly settled: number;
  readonly sent: number;
  /** What does not hold afterwards, once all was sent again. */
  readonly violations: readonly string[];
};

type Options = { readonly mode: Mode; readonly seconds: number; readonly say: (line: string) => void };

const CALLERS = 6;
/** What is accepted has to settle soon after. */
const PAUSE_MS = 500;
/** How far the standby is behind when the primary dies. */
const BEHIND_MS = 500;
/** A sweep continues settlements without a run within a minute. */
const SETTLED_TIMEOUT_MS = 60_000;
/** A settlement that is continued late finds out late that nobody reports its payment. */
const ROUNDS = 4;
const POLL_MS = 500;

/** A request for a settlement: its key, what it was answered, and when. */
type Sent = { readonly key: string; id?: string; at?: number };

export async function rehearseFailover({ mode, seconds, say }: Options): Promise<FailoverReport> {
  const forwarders: Forwarder[] = [];
  const open = async (port: number): Promise<Forwarder> => {
    const forwarder = await startForwarder(port);
    forwarders.push(forwarder);
    return forwarder;
  };
  let address: Forwarder | undefined;
  const stack = await startProcessStack({
    env: SERVICE_ENV,
    address: async (port) => {
      address = await open(port);
      return address.port;
    },
  });
  const connection = await Connection.connect({ address: stack.temporalAddress });
  try {
    const primary = new URL(stack.migrationUrl);
    const replication = await open(Number(primary.port));
    const standby = await startStandby({
      program: await postgresProgram(async () => stack.folder),
      serverUrl: `${primary.protocol}//${primary.username}:${primary.password}@${primary.host}`,
      from: path.join(stack.folder, 'postgres'),
      to: path.join(stack.folder, 'standby'),
      port: replication.port,
      mode,
    });
    try {
      say(`${mode}: the standby streams`);
      const failOver = async (): Promise<number> => {
        replication.disturb('cut');
        await delay(BEHIND_MS);
        await stack.kill('postgres');
        const killedAt = Date.now();
        replication.close();
        await standby.promote();
        address?.pointTo(standby.cluster.port);
        say(`${mode}: the primary was killed, and the standby is the primary`);
        return killedAt;
      };
      const database = Object.assign(new URL(stack.databaseUrl), { port: String(standby.cluster.port) }).href;
      return {
        mode,
        ...(await settleThrough(stack, { seconds, database, failOver, temporal: new Client({ connection }) })),
      };
    } finally {
      await standby.cluster.stop();
    }
  } finally {
    for (const forwarder of forwarders) forwarder.close();
    await connection.close();
    await stack.close();
  }
}

type Course = {
  readonly seconds: number;
  /** The new primary, as the role of the service. */
  readonly database: string;
  /** @returns when the primary was killed */
  readonly failOver: () => Promise<number>;
  readonly temporal: Client;
};

async function settleThrough(
  { baseUrl }: ProcessStack,
  { seconds, database, failOver, temporal }: Course,
): Promise<Omit<FailoverReport, 'mode'>> {
  const http = createHttpClient(baseUrl);
  const tenant = await createTenant(http);
  const recipientId = await createRecipient(http, tenant, 'Marcia Brown');
  const first = crypto.randomUUID();
  const all: Sent[] = [{ key: first, id: await settle(http, tenant, recipientId, first), at: Date.now() }];
  // Nobody starts a worker again here, and one that has not started yet would end with the primary.
  await until('worker that settles', () => isSettled(http, tenant, all[0]?.id), { timeoutMs: SETTLED_TIMEOUT_MS });
  const done = new AbortController();
  const call = async (): Promise<void> => {
    while (!done.signal.aborted) {
      const sent: Sent = { key: crypto.randomUUID() };
      all.push(sent);
      sent.id = await settle(http, tenant, recipientId, sent.key);
      sent.at = Date.now();
      await delay(PAUSE_MS);
    }
  };
  const callers = Array.from({ length: CALLERS }, call);
  await delay(seconds * 1_000);
  const killedAt = await failOver();
  await delay((seconds * 1_000) / 2);
  done.abort();
  await Promise.all(callers);

  const kept = await settlementsOf(database);
  const lost = all.filter(({ id = '' }) => !kept.has(id));
  const again = await Promise.all(lost.map(({ key }) => settle(http, tenant, recipientId, key)));
  const unreported = new Set<string>();
  let settled = 0;
  for (let round = 0; round < ROUNDS && settled < all.length; round += 1) {
    settled = await untilSettled(database, all.length);
    const waiting = [...(await settlementsOf(database))].filter(([, status]) => status === 'awaiting_funds');
    for (const [id] of waiting) {
      unreported.add(id);
      await reportPayment(http, tenant, id);
    }
  }
  const violations = await checkAtRest(database, temporal, []);
  const firstAfter = Math.min(...all.map(({ at = 0 }) => at).filter((at) => at > killedAt));
  return {
    accepted: all.filter(({ at = 0 }) => at < killedAt).length,
    lost: lost.length,
    changed: lost.filter(({ id }, index) => id !== again[index]).length,
    unreported: unreported.size,
    downSeconds: (firstAfter - killedAt) / 1_000,
    settled,
    sent: all.length,
    violations: violations.map(({ rule, detail }) => `${rule}: ${detail}`),
  };
}

/** @returns the settlement's id */
async function settle(http: HttpClient, tenant: Tenant, recipientId: string, key: string): Promise<string> {
  const { body } = await http.untilAnswered({
    method: 'POST',
    path: '/v2/settle',
    headers: authorize(tenant, { 'idempotency-key': key }),
    body: cardSettlementBody(recipientId),
  });
  return body.settlement_id;
}

async function isSettled(http: HttpClient, tenant: Tenant, settlementId = ''): Promise<boolean> {
  const request = { method: 'GET', path: `/v2/settle/${settlementId}`, headers: authorize(tenant) } as const;
  return (await http.untilAnswered(request)).body.status === 'settled';
}

const reportPayment = (http: HttpClient, tenant: Tenant, settlementId: string) =>
  http.untilAnswered({
    method: 'POST',
    path: `/v2/test-helpers/settlements/${settlementId}/events`,
    headers: authorize(tenant),
    body: { event: 'collection_succeeded' },
  });

async function settlementsOf(databaseUrl: string): Promise<Map<string, string>> {
  const statement = 'SELECT settlement_id AS id, status FROM settlements';
  const rows = await queryOnce<{ id: string; status: string }>(databaseUrl, statement);
  return new Map(rows.map(({ id, status }) => [id, status]));
}

/** Waits until so many have settled, or for a while. @returns how many have */
const untilSettled = (databaseUrl: string, wanted: number): Promise<number> =>
  askUntil(
    async () => [...(await settlementsOf(databaseUrl)).values()].filter((status) => status === 'settled').length,
    (settled) => settled >= wanted,
    { timeoutMs: SETTLED_TIMEOUT_MS, everyMs: POLL_MS },
  );
