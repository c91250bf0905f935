/**
 * `upgrade`: the released version serves requests on a database with a million settlements, while this version's
 * migrations run. What is measured is how long anybody waits for a lock, and what callers see.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { request } from 'undici';
import { loadConfig } from '../../config/load.ts';
import { sandboxSecrets } from '../../config/sandbox-secret.ts';
import { migrate } from '../../db/migrate.ts';
import { createSealer, type Sealer } from '../../db/seal.ts';
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { localDirectory } from '../../process/local/place.ts';
import {
  cardSettlementBody,
  type Partner,
  recipientBody,
  settleByCard,
  signUp,
} from '../../scripts/sandbox/partner.ts';
import { buildReleased } from '../rehearsal/released.ts';
import { fillHistory } from '../support/history-fill.ts';
import { startProcessStack } from '../support/process-stack.ts';
import { SERVICE_ENV } from '../support/provider-event.ts';
import { inRunFolder } from '../support/run-folder.ts';
import { fillSettlements } from '../support/settlement-fill.ts';
import { type Bench, count, percentile, report } from './bench.ts';
import { ENDED, SETTLEMENTS_OF_ORGANIZATION } from './scale.ts';

const LOCK_MS_MAX = 200;
const SAMPLE_MS = 10;
const CALLERS = 4;
const UNAVAILABLE = 503;
const OK_MAX = 299;

/** Whoever waits for a table but the migration itself: for how long, and for which. Rows are what callers lock. */
const WAITING = `
  SELECT extract(epoch FROM clock_timestamp() - waitstart)::float8 * 1000 AS ms,
    relation::regclass::text || ', ' || mode AS lock
  FROM pg_locks JOIN pg_stat_activity USING (pid)
  WHERE NOT granted AND locktype = 'relation' AND waitstart IS NOT NULL AND application_name <> 'settlement-migrate'
  ORDER BY 1 DESC LIMIT 1`;

export const upgrade: Bench = command({
  name: 'upgrade',
  description: `This version's migrations beside the released version's traffic. Exits with 1 above ${LOCK_MS_MAX} ms of lock.`,
  takes: {
    settlements: count('--settlements <count>', 'how many the database has', 1_000_000),
    seconds: count('--seconds <count>', 'how long the traffic is measured before', 20),
  },
  run: (printer: Printer, { settlements, seconds }) =>
    inRunFolder(async () => {
      const env = { ...sandboxSecrets(localDirectory), ...SERVICE_ENV };
      const stack = await startProcessStack({ env, version: await buildReleased() });
      const owner = new pg.Pool({ connectionString: stack.migrationUrl, max: 2, application_name: 'bench-owner' });
      try {
        const partner = await signUp({ baseUrl: stack.baseUrl, attemptsMax: 1 });
        const call = await callerOf(stack.baseUrl, partner);
        const { encryptionKeys } = loadConfig({ ...env, ...stack.env }, localDirectory);
        await fill(owner, createSealer(encryptionKeys), partner, settlements);
        printer.warn(`${settlements} settlements are written`);
        const before = await beside(owner, call, () => delay(seconds * 1_000));
        const during = await beside(owner, call, () => migrate(stack));
        const head = ['', 's', 'requests', 'p99 ms', 'slowest ms', 'longest lock ms', 'for', '503', 'otherwise failed'];
        report(printer, 'upgrade', [{ head, rows: [rowOf('before', before), rowOf('migrations run', during)] }]);
        return during.lock.ms <= LOCK_MS_MAX && during.failed === 0 ? EXIT.done : EXIT.refused;
      } finally {
        await owner.end();
        await stack.close();
      }
    }),
});

type Call = (index: number) => Promise<number>;
type Lock = { readonly ms: number; readonly lock: string };
type Seen = {
  readonly seconds: number;
  readonly times: readonly number[];
  readonly unavailable: number;
  readonly failed: number;
  readonly lock: Lock;
};

const rowOf = (what: string, { seconds, times, lock, unavailable, failed }: Seen) => [
  ...[what, [seconds], String(times.length), [percentile(times, 0.99)], [Math.max(...times)]],
  ...[[lock.ms], lock.lock, String(unavailable), String(failed)],
];

/** A settlement, a read of a page and a read in turn. @returns the status; 0 if no answer came */
async function callerOf(baseUrl: string, { client, apiKey }: Partner): Promise<Call> {
  const { recipient_id: id } = await client.recipients.create(recipientBody());
  const body = JSON.stringify(cardSettlementBody(id));
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };
  const paths = ['/v2/settle', '/v2/settlements?status=settled', `/v1/recipients/${id}`] as const;
  return async (index) => {
    const path = paths[index % paths.length] ?? paths[0];
    const method = path === '/v2/settle' ? 'POST' : 'GET';
    const keyed = { ...headers, ...(method === 'POST' && { 'idempotency-key': randomUUID() }) };
    try {
      const answer = await request(`${baseUrl}${path}`, {
        ...{ method, headers: keyed },
        ...(method === 'POST' && { body }),
      });
      await answer.body.dump();
      return answer.statusCode;
    } catch {
      return 0;
    }
  };
}

/** As `scale` does: settlements that have ended, a third of one organization. */
async function fill(owner: pg.Pool, sealer: Sealer, partner: Partner, settlements: number): Promise<void> {
  const { orgId, client } = partner;
  const { webhook_id: webhookId } = await client.webhooks.create({ url: 'http://127.0.0.1:9999/', event_types: ['*'] });
  const templateId = await settleByCard(partner);
  const filled = { orgId, templateId, settlements: Math.floor(settlements / 3), columns: ENDED };
  await fillSettlements(owner, sealer, filled);
  await fillHistory(owner, { orgId, webhookId, organizations: Math.ceil(settlements / SETTLEMENTS_OF_ORGANIZATION) });
  await owner.query('ANALYZE');
}

/** What callers see, and who waits for a lock, while something runs. */
async function beside(owner: pg.Pool, call: Call, run: () => Promise<unknown>): Promise<Seen> {
  const [times, startedMs]: [number[], number] = [[], performance.now()];
  let [isOver, next, unavailable, failed]: [boolean, number, number, number] = [false, 0, 0, 0];
  let lock: Lock = { ms: 0, lock: 'none' };
  const caller = async (): Promise<void> => {
    while (!isOver) {
      const [index, calledMs] = [next++, performance.now()];
      const status = await call(index);
      times.push(performance.now() - calledMs);
      if (status === UNAVAILABLE) unavailable += 1;
      else if (status === 0 || status > OK_MAX) failed += 1;
    }
  };
  const sampler = async (): Promise<void> => {
    while (!isOver) {
      const { rows } = await owner.query<Lock>(WAITING);
      if (rows[0] && rows[0].ms > lock.ms) lock = rows[0];
      await delay(SAMPLE_MS);
    }
  };
  const others = Promise.all([sampler(), ...Array.from({ length: CALLERS }, caller)]);
  await run();
  const seconds = (performance.now() - startedMs) / 1_000;
  isOver = true;
  await others;
  return { seconds, times, unavailable, failed, lock };
}
