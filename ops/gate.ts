/**
 * Launch gates (contract §14): an operator records evidence, two different operators approve it, and any operator can
 * revoke it. Evidence belongs to the configured environment and to one corridor.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';

import { approveGateEvidence, recordGateEvidence, revokeGateEvidence } from '../db/commands/gate.ts';
import { judgeGates, listGateEvidence } from '../db/queries/gate.ts';
import { CORRIDOR_IDS, type CorridorId } from '../domain/corridor.ts';
import {
  APPROVALS_REQUIRED,
  evaluateGates,
  forbiddingGates,
  GATES,
  type Gate,
  type GateEvidence,
  type GateReason,
  type GateVerdict,
  isForgiven,
} from '../domain/gate.ts';

import { environmentName } from '../domain/runtime.ts';
import { AUDIT_PARAMETERS, changeCommand, type OpsCommand, type OpsDeps, operator, timedCommand } from './command.ts';
import { file, oneOf, optional, type Reader, required, text } from './command-line/parameter.ts';
import { CommandError, EXIT, type ExitCode, group } from './command-line/program.ts';

type Document = { readonly reference: string; readonly sha256: Buffer };
type Recording = {
  readonly gate: Gate;
  readonly corridor: CorridorId;
  readonly document: Document;
  readonly expiresAt: Date;
  readonly operator: string;
};
type Act = { readonly evidenceId: string; readonly operator: string; readonly note: string };

const FORGIVEN = 'its gate has no evidence any more, which the local sandbox forgives.';

const corridor = oneOf(CORRIDOR_IDS);
const evidenceId = required('<evidence-id>', 'the evidence', text);

const EXPIRY_FAULT = 'must be a date in the future, such as 2027-01-31 or 2027-01-31T12:00:00Z.';

const expiry: Reader<Date> = {
  read: (given) => {
    const isDate = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}(\.\d{1,3})?Z)?$/.test(given);
    const value = new Date(isDate ? given : Number.NaN);
    // JavaScript reads a 30th of February as the 2nd of March.
    return !Number.isNaN(value.getTime()) && value.toISOString().startsWith(given.slice(0, 10))
      ? { value }
      : { fault: EXPIRY_FAULT };
  },
};

const document: Reader<Document> = {
  read: (given) => {
    const reading = file.read(given);
    if ('fault' in reading) return reading;
    const fault = 'must be a file that can be read and is not empty.';
    try {
      const bytes = readFileSync(reading.value);
      if (bytes.length === 0) return { fault };
      return {
        value: { reference: path.basename(reading.value), sha256: createHash('sha256').update(bytes).digest() },
      };
    } catch {
      return { fault };
    }
  },
};

export const gateCommands: OpsCommand = group(
  'gate',
  'Launch gates: the evidence that opens them, in the configured environment.',
  [
    timedCommand({
      name: 'list',
      description: 'Lists the gates, open or closed, and their evidence.',
      takes: { corridor: optional('--corridor <corridor>', 'this corridor only', corridor) },
      run: (deps: OpsDeps, given) => list(deps, given.corridor),
    }),
    timedCommand({
      name: 'explain',
      description: 'Says what would happen to a settlement accepted now on a corridor, and why.',
      takes: { corridor: required('<corridor>', 'the corridor', corridor) },
      run: (deps: OpsDeps, given) => explain(deps, given.corridor),
    }),
    changeCommand({
      name: 'record',
      description: `Records evidence for a gate. The gate stays closed until ${APPROVALS_REQUIRED} operators approve.`,
      takes: {
        gate: required('<gate>', 'the gate', oneOf(GATES)),
        corridor: required('--corridor <corridor>', 'the corridor', corridor),
        document: required('--evidence <file>', 'the document; its name and SHA-256 are stored', document),
        expiresAt: required('--expires <date>', 'the end of its validity, such as 2027-01-31', expiry),
        operator,
      },
      run: record,
    }),
    changeCommand({
      name: 'approve',
      description: 'Approves evidence. The note says what was examined.',
      takes: { evidenceId, ...AUDIT_PARAMETERS },
      run: approve,
    }),
    changeCommand({
      name: 'revoke',
      description:
        'Revokes evidence, which closes its gate if it decides. The local sandbox forgives a gate without evidence.',
      takes: { evidenceId, ...AUDIT_PARAMETERS },
      run: revoke,
    }),
  ],
);

async function list(deps: OpsDeps, given: CorridorId | undefined): Promise<ExitCode> {
  const environment = environmentName(deps.runtime);
  const evidence = await listGateEvidence(deps.db, environment, given);
  const corridors = given === undefined ? CORRIDOR_IDS : [given];
  const verdicts = evaluateGates(evidence, { environment, corridors }, deps.now());
  deps.print(`${environment}, ${given ?? 'every corridor'}:`);
  for (const { gate, reason } of verdicts) deps.print(`  ${gate}: ${stateOf(deps, reason)}`);
  for (const item of evidence) deps.print(lineOf(item));
  deps.printData({
    environment,
    corridor: given ?? null,
    gates: verdicts.map((verdict) => gateData(deps, verdict)),
    evidence: evidence.map(evidenceData),
  });
  return EXIT.done;
}

const gateData = ({ runtime }: OpsDeps, { gate, reason }: GateVerdict) => ({
  gate,
  is_open: reason === null,
  reason,
  is_forgiven: reason !== null && isForgiven(reason, runtime),
});

function stateOf({ runtime }: OpsDeps, reason: GateReason | null): string {
  if (reason === null) return 'open';
  return `closed, ${reason}${isForgiven(reason, runtime) ? ' (forgiven in the local sandbox)' : ''}`;
}

/** What would happen to a settlement accepted now on a corridor, gate by gate. */
async function explain(deps: OpsDeps, given: CorridorId): Promise<ExitCode> {
  const { db, runtime } = deps;
  const verdicts = await judgeGates(db, { runtime, corridor: given, now: deps.now() });
  const forbidding = forbiddingGates(verdicts, runtime);
  const answer =
    forbidding.length === 0
      ? `A settlement on ${given} would be accepted in ${environmentName(runtime)}.`
      : `A settlement on ${given} would be refused in ${environmentName(runtime)}: 503 launch_gates_closed.`;
  deps.print(answer);
  for (const verdict of verdicts)
    deps.print(`  ${verdict.gate}: ${stateOf(deps, verdict.reason)}: ${becauseOf(verdict)}`);
  deps.printData({
    corridor: given,
    environment: environmentName(runtime),
    would_be_accepted: forbidding.length === 0,
    gates: verdicts.map((verdict) => ({
      ...gateData(deps, verdict),
      evidence_id: verdict.evidence?.evidenceId ?? null,
      because: becauseOf(verdict),
    })),
  });
  return EXIT.done;
}

function becauseOf({ reason, evidence }: GateVerdict): string {
  const named = `evidence ${evidence?.evidenceId} (${evidence?.reference})`;
  const approvals = evidence?.approvals.length ?? 0;
  switch (reason) {
    case null:
      return `${named} is approved and expires ${evidence?.expiresAt.toISOString()}`;
    case 'no_evidence':
      return 'no evidence is recorded';
    case 'revoked':
      return `${named} was revoked ${evidence?.revokedAt?.toISOString()}`;
    case 'clock_behind':
      return `${named} or an approval of it is dated later than now`;
    case 'expired':
      return `${named} expired ${evidence?.expiresAt.toISOString()}`;
    case 'not_approved':
      return `${named} has ${approvals} of ${APPROVALS_REQUIRED} approvals`;
    case 'no_live_adapter':
      return 'no live payout adapter exists';
    case 'other_environment':
    case 'unreadable':
      return 'the gates cannot be read for this environment';
  }
}

const lineOf = (item: GateEvidence): string =>
  [
    `${item.evidenceId} ${item.gate} ${item.corridor}`,
    `sha256:${item.sha256} ${item.reference}`,
    `recorded by ${item.recordedBy}, approved by ${approversOf(item).join(' and ') || 'nobody'}`,
    `expires ${item.expiresAt.toISOString()}`,
    ...(item.revokedAt === null ? [] : [`revoked ${item.revokedAt.toISOString()}`]),
  ].join('; ');

const approversOf = ({ approvals }: GateEvidence): string[] => approvals.map((approval) => approval.operator);

const evidenceData = (item: GateEvidence) => ({
  evidence_id: item.evidenceId,
  gate: item.gate,
  corridor: item.corridor,
  sha256: item.sha256,
  reference: item.reference,
  recorded_by: item.recordedBy,
  approved_by: approversOf(item),
  expires_at: item.expiresAt,
  revoked_at: item.revokedAt,
});

async function record(deps: OpsDeps, { document: { reference, sha256 }, ...recording }: Recording): Promise<ExitCode> {
  // By the clock of the database, where that of the machine is wrong.
  if (recording.expiresAt <= deps.now()) throw new CommandError(EXIT.usage, `--expires ${EXPIRY_FAULT}`);
  if (await isPassable(deps, recording))
    deps.warn(
      `This closes ${recording.gate}, which lets settlements on ${recording.corridor} through now: they are refused ` +
        `until ${APPROVALS_REQUIRED} operators have approved the new evidence.`,
    );
  const id = await recordGateEvidence(deps, { ...recording, reference, sha256 });
  const environment = environmentName(deps.runtime);
  deps.print(`${id} recorded for ${recording.gate} on ${recording.corridor} in ${environment}.`);
  deps.print(`The gate is closed until ${APPROVALS_REQUIRED} operators approve.`);
  deps.printData({ evidence_id: id });
  return EXIT.done;
}

/** Whether the gate, open or forgiven, lets settlements through now. */
async function isPassable(
  { db, runtime, now }: OpsDeps,
  { gate, corridor: of }: Pick<Recording, 'gate' | 'corridor'>,
): Promise<boolean> {
  const verdicts = await judgeGates(db, { runtime, corridor: of, now: now() });
  return !forbiddingGates(verdicts, runtime).some((closed) => closed.gate === gate);
}

async function approve(deps: OpsDeps, { evidenceId: id, ...act }: Act): Promise<ExitCode> {
  await approveGateEvidence(deps, id, act);
  deps.print(`${id} approved by ${act.operator}.`);
  deps.printData({ evidence_id: id });
  return EXIT.done;
}

async function revoke(deps: OpsDeps, { evidenceId: id, ...act }: Act): Promise<ExitCode> {
  const revoked = await revokeGateEvidence(deps, id, act);
  const ofCorridor = CORRIDOR_IDS.find((known) => known === revoked.corridor);
  const verdicts = await judgeGates(deps.db, { runtime: deps.runtime, corridor: ofCorridor, now: deps.now() });
  const verdict = verdicts.find(({ gate }) => gate === revoked.gate);
  deps.print(`${id} revoked by ${act.operator}; ${afterRevocation(deps, id, verdict)}`);
  deps.printData({ evidence_id: id });
  return EXIT.done;
}

/** Evidence that newer evidence has replaced does not decide about its gate. */
function afterRevocation(deps: OpsDeps, id: string, verdict: GateVerdict | undefined): string {
  if (verdict?.evidence && verdict.evidence.evidenceId !== id)
    return `newer evidence decides: its gate is ${stateOf(deps, verdict.reason)}.`;
  return isForgiven('revoked', deps.runtime) ? FORGIVEN : 'its gate is closed.';
}
