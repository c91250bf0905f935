/**
 * Launch gates by hand (contract §14): record evidence, approve it as two different operators, revoke it. Evidence is
 * bound to the configured environment and to one corridor.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { approveGateEvidence, recordGateEvidence, revokeGateEvidence } from '../db/commands/gate.ts';
import { listGateEvidence } from '../db/queries/gate.ts';
import { CORRIDOR_IDS } from '../domain/corridor.ts';
import { APPROVALS_REQUIRED, evaluateGates, GATES, type GateEvidence } from '../domain/gate.ts';
import { environmentName } from '../domain/runtime.ts';
import {
  type Given,
  type OpsDeps,
  oneOf,
  type Reading,
  read,
  readAct,
  readArgs,
  readOperator,
  UsageError,
} from './command.ts';

export const GATE_USAGE = [
  'gate list [--corridor US-JM]',
  'gate record <gate> --corridor US-JM --evidence <file> --expires 2027-01-31 --operator <name>',
  'gate approve <evidence id> --operator <name> --note <what was examined>',
  'gate revoke <evidence id> --operator <name> --note <why>',
] as const;

type Verb = {
  readonly takes: Parameters<typeof readArgs>[1];
  readonly run: (deps: OpsDeps, given: Given) => Promise<void>;
};

const VERBS = new Map<string, Verb>([
  ['list', { takes: ['corridor'], run: list }],
  ['record', { takes: ['corridor', 'evidence', 'expires', 'operator'], run: record }],
  ['approve', { takes: ['operator', 'note'], run: approve }],
  ['revoke', { takes: ['operator', 'note'], run: revoke }],
]);

/** @throws UsageError; DomainError as the act itself */
export async function gateCommand(deps: OpsDeps, [name = '', ...args]: readonly string[]): Promise<void> {
  const verb = VERBS.get(name);
  if (!verb) throw new UsageError([`There is no command gate ${JSON.stringify(name)}.`]);
  await verb.run(deps, readArgs(args, verb.takes, 1));
}

async function list(deps: OpsDeps, given: Given): Promise<void> {
  const corridor =
    given.corridor === undefined
      ? undefined
      : read({ corridor: oneOf('corridor', CORRIDOR_IDS, given.corridor) }).corridor;
  const environment = environmentName(deps.runtime);
  const evidence = await listGateEvidence(deps.db, environment, corridor);
  const verdicts = evaluateGates(
    evidence,
    { environment, corridors: corridor === undefined ? CORRIDOR_IDS : [corridor] },
    deps.now(),
  );
  deps.print(`${environment}, ${corridor ?? 'every corridor'}:`);
  for (const { gate, reason } of verdicts) deps.print(`  ${gate}: ${reason === null ? 'open' : `closed, ${reason}`}`);
  for (const item of evidence) deps.print(lineOf(item));
}

const lineOf = ({
  evidenceId,
  gate,
  corridor,
  sha256,
  reference,
  recordedBy,
  expiresAt,
  revokedAt,
  approvals,
}: GateEvidence): string =>
  [
    `${evidenceId} ${gate} ${corridor}`,
    `sha256:${sha256} ${reference}`,
    `recorded by ${recordedBy}, approved by ${approvals.map(({ operator }) => operator).join(' and ') || 'nobody'}`,
    `expires ${expiresAt.toISOString()}`,
    ...(revokedAt === null ? [] : [`revoked ${revokedAt.toISOString()}`]),
  ].join('; ');

async function record(deps: OpsDeps, given: Given): Promise<void> {
  const now = deps.now();
  const { gate, corridor, document, expiresAt, operator } = read({
    gate: oneOf('gate', GATES, given.subject),
    corridor: oneOf('corridor', CORRIDOR_IDS, given.corridor),
    document: readDocument(given.evidence),
    expiresAt: readExpiry(given.expires, now),
    operator: readOperator(given.operator),
  });
  const environment = environmentName(deps.runtime);
  const evidenceId = await recordGateEvidence(deps, { gate, corridor, ...document, expiresAt, operator });
  deps.print(
    `${evidenceId} recorded for ${gate} on ${corridor} in ${environment}. The gate is closed until ${APPROVALS_REQUIRED} operators approve.`,
  );
}

async function approve(deps: OpsDeps, given: Given): Promise<void> {
  const { objectId: evidenceId, operator, note } = readAct('evidence', given);
  await approveGateEvidence(deps, evidenceId, { operator, note });
  deps.print(`${evidenceId} approved by ${operator}.`);
}

async function revoke(deps: OpsDeps, given: Given): Promise<void> {
  const { objectId: evidenceId, operator, note } = readAct('evidence', given);
  await revokeGateEvidence(deps, evidenceId, { operator, note });
  deps.print(`${evidenceId} revoked by ${operator}; its gate is closed.`);
}

function readExpiry(text: string | undefined, now: Date): Reading<Date> {
  const value = new Date(
    /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}(\.\d{1,3})?Z)?$/.test(text ?? '') ? (text ?? '') : Number.NaN,
  );
  return value > now
    ? { value }
    : { fault: '--expires must be a date in the future, such as 2027-01-31 or 2027-01-31T12:00:00Z.' };
}

function readDocument(file: string | undefined): Reading<{ reference: string; sha256: Buffer }> {
  try {
    const bytes = readFileSync(file ?? '');
    if (bytes.length > 0)
      return { value: { reference: path.basename(file ?? ''), sha256: createHash('sha256').update(bytes).digest() } };
  } catch {
    // Said below.
  }
  return { fault: '--evidence must be a file that can be read and is not empty.' };
}
