/**
 * What a night of bad luck and a deployment look like to a partner: settlements through both APIs while processes are
 * killed, then while each is restarted in turn. Afterwards every settlement has settled exactly once, and no request
 * failed in a way that the partner could not simply repeat.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { percentile } from '../bench/bench.ts';
import { type MemberName, type Members, PRODUCT_MEMBERS } from './member.ts';
import { type Evidence, openEvidence } from './outcome.ts';
import { createPartner, Fault, OUTCOMES, type Partner, type Report } from './partner.ts';
import type { Cluster } from './steps.ts';

type Options = { readonly settlements: number; readonly print: (line: string) => void; readonly signal: AbortSignal };
type Scene = Options & { readonly members: Members; readonly evidence: Evidence; readonly apiUrls: readonly string[] };

const CALLERS = 16;
/** One caller in so many waits by reads that hang, the others read as often as the answer says. */
const PATIENT_SHARE = 4;
const READ_INTERVAL_MS = 1_000;
const KILLED = ['API 1', 'worker 1', 'Temporal'] as const;
const DOWN_MS = 500;
const POLL_MS = 50;
const BETWEEN_RESTARTS_MS = 2_000;
const WAIT_SECONDS = 20;
const TERMINAL = new Set(['settled', 'failed', 'rejected', 'expired', 'canceled']);

/** @returns whether nothing was lost, doubled or refused that should not have been */
export async function rehearse({ members, apiUrls, ...cluster }: Cluster, options: Options): Promise<boolean> {
  const evidence = await openEvidence(cluster);
  const scene = { ...options, members, apiUrls, evidence };
  try {
    const undisturbed = await act(scene, 'Undisturbed', (play) =>
      settleAll(play, Math.ceil(options.settlements / 4), []),
    );
    const killed = await act(scene, 'Killed with SIGKILL', (play) => settleAll(play, options.settlements, KILLED));
    const rolled = await act(scene, 'Rolling restart with SIGTERM', rollingRestart);
    const passed = undisturbed && killed && rolled;
    options.print(
      passed
        ? '\nNothing was lost or doubled, and no request failed that could not simply be repeated.'
        : '\nSomething is not as it should be.',
    );
    return passed;
  } finally {
    await evidence.close();
  }
}

type Play = Scene & { readonly partner: Partner; readonly accepted: string[] };

/** Each act has a partner of its own; all it was told of is compared with what is there. */
async function act(scene: Scene, title: string, perform: (play: Play) => Promise<void>): Promise<boolean> {
  const { evidence, print, signal, apiUrls } = scene;
  print(`${title}`);
  const partner = await createPartner(apiUrls, signal);
  try {
    const accepted: string[] = [];
    const startedAt = performance.now();
    await perform({ ...scene, partner, accepted });
    const seconds = (performance.now() - startedAt) / 1_000;
    const report = partner.report();
    const differences = await evidence.differences(partner.orgId, accepted);
    print(`  ${accepted.length} settlements in ${seconds.toFixed(1)} s: ${(accepted.length / seconds).toFixed(1)}/s`);
    printReport(report, print);
    print(
      differences.length === 0
        ? '  each settled once: postings, certificate, workflow'
        : `  differences:\n    ${differences.slice(0, 10).join('\n    ')}`,
    );
    return differences.length === 0 && report.outcomes.fault === 0;
  } finally {
    await partner.close();
  }
}

/** Callers that settle one after another; after equal shares of the settlements, one process after another is killed. */
async function settleAll(play: Play, count: number, victims: readonly MemberName[]): Promise<void> {
  const share = Math.floor(count / (victims.length + 2));
  let begun = 0;
  let done = 0;
  const due: MemberName[] = [];
  const work = async (caller: number): Promise<void> => {
    while (begun < count) {
      begun += 1;
      await settleOne(play, caller);
      done += 1;
      const victim = done % share === 0 ? victims[done / share - 1] : undefined;
      if (victim) due.push(victim);
    }
  };
  // One after the other, each when the one before has come back.
  const kill = async (): Promise<void> => {
    for (let killed = 0; killed < victims.length; await delay(POLL_MS)) {
      const victim = due.shift();
      if (victim === undefined) continue;
      await killAndRestart(play, victim);
      killed += 1;
    }
  };
  await Promise.all([kill(), ...Array.from({ length: CALLERS }, (_, caller) => work(caller))]);
}

/** A settlement of its own, asked for the moment after the kill, tells how long the partner has to wait. */
async function killAndRestart(play: Play, victim: MemberName): Promise<void> {
  const { members, print } = play;
  await members.kill(victim);
  const killedAt = performance.now();
  const sinceKill = () => performance.now() - killedAt;
  const restart = async () => {
    await delay(DOWN_MS);
    await members.start(victim);
  };
  const [readyMs, settledMs] = await Promise.all([restart().then(sinceKill), settleOne(play).then(sinceKill)]);
  print(
    `  ${victim} killed: ready again after ${inSeconds(readyMs)}; a settlement asked for at once had settled after ${inSeconds(settledMs)}`,
  );
}

/** Requests flow without a pause while one process after another is told to stop and started again. */
async function rollingRestart(play: Play): Promise<void> {
  const done = new AbortController();
  const work = async (caller: number): Promise<void> => {
    while (!done.signal.aborted) await settleOne(play, caller);
  };
  const flow = Array.from({ length: CALLERS }, (_, caller) => work(caller));
  await Promise.all([restartInTurn(play).finally(() => done.abort()), ...flow]);
}

async function restartInTurn({ members, print }: Play): Promise<void> {
  for (const name of PRODUCT_MEMBERS) {
    await delay(BETWEEN_RESTARTS_MS);
    const stopMs = await members.stop(name);
    const startMs = await members.start(name);
    print(`  ${name} stopped in ${inSeconds(stopMs)}, ready ${inSeconds(startMs)} later`);
  }
  await delay(BETWEEN_RESTARTS_MS);
}

const Settlement = z.object({ settlement_id: z.string(), status: z.string() });

/**
 * Settles with a key of its own and reads until nothing more can become of it. A fault ends it, and is in the report.
 *
 * @param caller its number
 */
async function settleOne({ partner, accepted }: Play, caller = 0): Promise<void> {
  const body = {
    corridor: 'US-JM',
    amount: '250.00',
    recipient_id: partner.recipientId,
    payment_method: 'card',
    payout_rail: 'bank_transfer',
    card_token: 'tok_visa',
  };
  try {
    const headers = { 'idempotency-key': crypto.randomUUID() };
    let settlement = Settlement.parse(await partner.call({ method: 'POST', path: '/v2/settle', body, headers }));
    accepted.push(settlement.settlement_id);
    const isPatient = caller % PATIENT_SHARE === 0;
    while (!TERMINAL.has(settlement.status)) {
      if (!isPatient) await delay(READ_INTERVAL_MS);
      const path = `/v2/settle/${settlement.settlement_id}`;
      settlement = Settlement.parse(
        await partner.call({ method: 'GET', path, headers: isPatient ? { prefer: `wait=${WAIT_SECONDS}` } : {} }),
      );
    }
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
  }
}

function printReport({ outcomes, faults, callTimesMs }: Report, print: Options['print']): void {
  print(`  attempts: ${OUTCOMES.map((outcome) => `${outcome} ${outcomes[outcome]}`).join(', ')}`);
  const [half, most, slowest] = [0.5, 0.99, 1].map((part) => percentile(callTimesMs, part).toFixed(0));
  print(`  a call with its repetitions took ${half} ms (median), ${most} ms (99 %), ${slowest} ms (slowest)`);
  for (const fault of faults) print(`  fault: ${fault}`);
}

const inSeconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
