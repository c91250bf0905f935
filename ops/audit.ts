/** `audit verify`: whether the audit entries are as they were written. */
import { auditFaults, GENESIS } from '../db/audit-chain.ts';
import { listAuditChain } from '../db/queries/audit.ts';
import type { OpsCommand, OpsDeps } from './command.ts';
import { optional, type Reader } from './command-line/parameter.ts';
import { command, EXIT, group } from './command-line/program.ts';

const PAGE_SIZE = 1_000;
/** How many faults are shown. */
const FAULTS_MAX = 20;

const hash: Reader<string> = {
  read: (given) =>
    /^[0-9a-f]{64}$/.test(given) ? { value: given } : { fault: 'must be a hash: 64 digits from 0 to 9 and a to f.' },
};

type Verified = {
  readonly entries: number;
  readonly lastHash: string;
  readonly faults: readonly string[];
  readonly faultCount: number;
  /** The number of the entry that has the expected hash, 0 for the genesis; undefined when none has it. */
  readonly expectedAt: number | undefined;
};

export const auditCommands: OpsCommand = group('audit', 'The chain of audit entries.', [
  command({
    name: 'verify',
    description: 'Says whether the audit entries are intact, or which is changed or missing. Prints the last hash.',
    takes: {
      expected: optional('--expect <hash>', 'a last hash that was printed before: its entry must be there', hash),
    },
    run: async (deps: OpsDeps, { expected }) => {
      const { entries, lastHash, faults, faultCount, expectedAt } = await verify(deps, expected);
      const isExpectedMissing = expected !== undefined && expectedAt === undefined;
      const isIntact = faultCount === 0 && !isExpectedMissing;
      for (const fault of faults) deps.warn(fault);
      if (faultCount > faults.length) deps.warn(`${faultCount - faults.length} more faults are not shown.`);
      if (isExpectedMissing)
        deps.warn('No entry has the expected hash: the last entries are missing, or the chain was written anew.');
      if (expectedAt !== undefined)
        deps.print(`Entry ${expectedAt} has the expected hash; ${entries - expectedAt} follow.`);
      deps.print(`${isIntact ? 'Intact' : 'NOT INTACT'}. Entries: ${entries}. Last hash: ${lastHash}`);
      deps.printData({ intact: isIntact, entries, last_hash: lastHash, faults, expected_at: expectedAt ?? null });
      return isIntact ? EXIT.done : EXIT.refused;
    },
  }),
]);

/** Reads the whole chain, in pages. A chain that grows meanwhile is read to where it ends then. */
async function verify({ db }: OpsDeps, expected: string | undefined): Promise<Verified> {
  let previous = GENESIS;
  let after: { readonly sequence: number; readonly auditId: string } = { sequence: -1, auditId: '' };
  let [entries, faultCount] = [0, 0];
  const faults: string[] = [];
  let expectedAt = expected === GENESIS.hash.toString('hex') ? 0 : undefined;
  for (;;) {
    const page = await listAuditChain(db, after, PAGE_SIZE);
    for (const entry of page) {
      const found = auditFaults(previous, entry);
      faultCount += found.length;
      faults.push(...found.slice(0, FAULTS_MAX - faults.length));
      if (expected === entry.hash.toString('hex')) expectedAt = entry.sequence;
      [previous, after] = [entry, entry];
    }
    entries += page.length;
    if (page.length < PAGE_SIZE)
      return { entries, lastHash: previous.hash.toString('hex'), faults, faultCount, expectedAt };
  }
}
