/**
 * What a partner sees while the released version is upgraded to this one, and while processes are killed and PostgreSQL
 * fails over: settlements through all APIs in three phases. Afterwards every accepted settlement must have settled
 * exactly once, and every request that failed must be one that the partner may repeat.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { SettlementError } from '../../clients/typescript/index.ts';
import { isTerminal } from '../../domain/settlement/state.ts';
import { cardSettlementBody } from '../../scripts/sandbox/partner.ts';
import { percentile } from '../bench/bench.ts';
import { type MemberName, type Members, PRODUCT_MEMBERS } from './member.ts';
import { type Evidence, openEvidence } from './outcome.ts';
import { type CarefulPartner, createCarefulPartner, OUTCOMES, type Report } from './partner.ts';
import type { Cluster } from './steps.ts';

type Options = { readonly settlements: number; readonly print: (line: string) => void; readonly signal: AbortSignal };
type Context = Options & {
  readonly members: Members;
  readonly evidence: Evidence;
  readonly apiUrls: readonly string[];
  readonly upgrade: Cluster['upgrade'];
};

const CALLERS = 16;
/** Every fourth caller waits with reads that the API holds back. The others read at an interval. */
const WAITING_READERS_EVERY = 4;
const READ_INTERVAL_MS = 1_000;
/** With every process killed once meanwhile. */
const SETTLE_TIMEOUT_MS = 600_000;
const KILLED = ['API 1', 'worker 1', 'PostgreSQL', 'Temporal'] as const;
const DOWN_MS = 500;
const POLL_MS = 50;
const BETWEEN_RESTARTS_MS = 2_000;
const DIFFERENCES_SHOWN_MAX = 10;

/** @returns whether nothing was lost or doubled, and no request failed that may not be repeated */
export async function rehearse(
  { members, apiUrls, upgrade, without, ...cluster }: Cluster,
  options: Options,
): Promise<boolean> {
  const evidence = await openEvidence(cluster);
  const context = { ...options, members, apiUrls, upgrade, evidence };
  try {
    const undisturbed = await runPhase(context, 'Undisturbed', (phase) =>
      settleAll(phase, Math.ceil(options.settlements / 4), []),
    );
    const upgraded = await runPhase(context, 'Migration and rolling upgrade with SIGTERM', rollingUpgrade);
    const killed = await runPhase(context, 'Killed with SIGKILL, PostgreSQL with a failover', (phase) =>
      settleAll(phase, options.settlements, KILLED),
    );
    const passed = undisturbed && upgraded && killed;
    options.print(
      passed
        ? '\nPassed: nothing was lost or doubled, and the partner could repeat every request that failed.'
        : '\nFailed: see the differences and faults above.',
    );
    for (const what of without) options.print(`Without ${what}`);
    return passed;
  } finally {
    await evidence.close();
  }
}

type Phase = Context & { readonly partner: CarefulPartner; readonly accepted: string[] };

/** Each phase has a partner of its own. The settlements accepted from it are compared with the databases. */
async function runPhase(context: Context, title: string, run: (phase: Phase) => Promise<void>): Promise<boolean> {
  const { evidence, print, signal, apiUrls } = context;
  print(title);
  const partner = await createCarefulPartner(apiUrls, signal);
  try {
    const accepted: string[] = [];
    const startedAt = performance.now();
    await run({ ...context, partner, accepted });
    const seconds = (performance.now() - startedAt) / 1_000;
    const differences = await evidence.differences(partner.orgId, accepted);
    const startedAgain = await evidence.startedAgain(partner.orgId);
    print(`  ${accepted.length} settlements in ${seconds.toFixed(1)} s: ${(accepted.length / seconds).toFixed(1)}/s`);
    printReport(partner.report, print);
    print(
      differences.length === 0
        ? `  each settled once: postings, certificate, workflow (${startedAgain} ran again, without effect)`
        : `  differences:\n    ${differences.slice(0, DIFFERENCES_SHOWN_MAX).join('\n    ')}`,
    );
    return differences.length === 0 && partner.report.outcomes.fault === 0;
  } finally {
    partner.close();
  }
}

/**
 * Several callers settle at once. At equal intervals in the count of settlements, one process after another is killed.
 */
async function settleAll(phase: Phase, count: number, victims: readonly MemberName[]): Promise<void> {
  const interval = Math.floor(count / (victims.length + 2));
  let begun = 0;
  let done = 0;
  const due: MemberName[] = [];
  const settleOneAfterAnother = async (caller: number): Promise<void> => {
    while (begun < count) {
      begun += 1;
      await settleOne(phase, caller);
      done += 1;
      const victim = done % interval === 0 ? victims[done / interval - 1] : undefined;
      if (victim) due.push(victim);
    }
  };
  // A process is killed only after the one before it is ready again.
  const killOneAfterAnother = async (): Promise<void> => {
    for (let killed = 0; killed < victims.length; await delay(POLL_MS)) {
      const victim = due.shift();
      if (victim === undefined) continue;
      await killAndRestart(phase, victim);
      killed += 1;
    }
  };
  const callers = Array.from({ length: CALLERS }, (_, caller) => settleOneAfterAnother(caller));
  await Promise.all([killOneAfterAnother(), ...callers]);
}

/** One settlement is requested right after the kill. It shows how long a partner has to wait. */
async function killAndRestart(phase: Phase, victim: MemberName): Promise<void> {
  const { members, print } = phase;
  await members.kill(victim);
  const killedAt = performance.now();
  const sinceKill = () => performance.now() - killedAt;
  const restart = async () => {
    await delay(DOWN_MS);
    await members.start(victim);
  };
  const [readyMs, settledMs] = await Promise.all([restart().then(sinceKill), settleOne(phase).then(sinceKill)]);
  print(
    `  ${victim} killed: ready again after ${inSeconds(readyMs)}; a settlement requested at once had ended after ${inSeconds(settledMs)}`,
  );
}

/** The callers go on without a pause while one process after another is stopped, and started as this version. */
async function rollingUpgrade(phase: Phase): Promise<void> {
  const done = new AbortController();
  const settleOneAfterAnother = async (caller: number): Promise<void> => {
    while (!done.signal.aborted) await settleOne(phase, caller);
  };
  const callers = Array.from({ length: CALLERS }, (_, caller) => settleOneAfterAnother(caller));
  await Promise.all([restartInTurn(phase).finally(() => done.abort()), ...callers]);
}

async function restartInTurn({ members, upgrade, print }: Phase): Promise<void> {
  await delay(BETWEEN_RESTARTS_MS);
  await upgrade();
  for (const name of PRODUCT_MEMBERS) {
    await delay(BETWEEN_RESTARTS_MS);
    const stopMs = await members.stop(name);
    const startMs = await members.start(name);
    print(`  ${name} stopped in ${inSeconds(stopMs)}, ready ${inSeconds(startMs)} later`);
  }
  await delay(BETWEEN_RESTARTS_MS);
}

/**
 * Settles and reads until the settlement has ended. Stops at a fault, which is in the report.
 *
 * @param caller decides how it reads
 */
async function settleOne({ partner, accepted }: Phase, caller = 0): Promise<void> {
  try {
    const body = cardSettlementBody(partner.recipientId);
    const { settlement_id: id } = await partner.call(({ settlements }) => settlements.create(body));
    accepted.push(id);
    if (caller % WAITING_READERS_EVERY === 0) {
      await partner.call(({ settlements }) => settlements.wait(id, { timeoutMs: SETTLE_TIMEOUT_MS }));
      return;
    }
    do await delay(READ_INTERVAL_MS);
    while (!isTerminal((await partner.call(({ settlements }) => settlements.get(id))).status));
  } catch (error) {
    if (!(error instanceof SettlementError)) throw error;
  }
}

function printReport({ outcomes, faults, callTimesMs }: Report, print: Options['print']): void {
  print(`  attempts: ${OUTCOMES.map((outcome) => `${outcome} ${outcomes[outcome]}`).join(', ')}`);
  const [half, most, slowest] = [0.5, 0.99, 1].map((part) => percentile(callTimesMs, part).toFixed(0));
  print(`  a call with its repetitions took ${half} ms (median), ${most} ms (99 %), ${slowest} ms (slowest)`);
  for (const fault of faults) print(`  fault: ${fault}`);
}

const inSeconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
