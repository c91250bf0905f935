/**
 * The chain of audit entries. Each entry carries the hash of the one before and its own, so an entry that was edited,
 * deleted, inserted or moved later is noticed. Entries that are missing at the end are noticed only by who knows a
 * later hash: operators keep the one that `ops audit verify` prints.
 */
import { createHash } from 'node:crypto';
import type { auditEntries } from './schema/audit.ts';

type AuditRow = typeof auditEntries.$inferSelect;

/** What the next entry follows. */
export type AuditLink = Pick<AuditRow, 'sequence' | 'hash'>;

const sha256 = (bytes: string): Buffer => createHash('sha256').update(bytes).digest();

const GENESIS_NAME = 'settlement-service audit genesis 1';
/** What the first entry follows: no entry, and the hash of a name. */
export const GENESIS: AuditLink = { sequence: 0, hash: sha256(GENESIS_NAME) };

/**
 * The hash of an entry: SHA-256 of its fields, with the hash of the entry before, as one JSON array in UTF-8. The order
 * of the fields never changes.
 */
const auditHash = (entry: Omit<AuditRow, 'hash'>): Buffer =>
  sha256(
    JSON.stringify([
      entry.sequence,
      entry.previousHash.toString('hex'),
      entry.auditId,
      entry.orgId,
      entry.objectId,
      entry.action,
      entry.operator,
      entry.note,
      entry.at.toISOString(),
    ]),
  );

/** An entry that follows another one. */
export function chained(
  previous: AuditLink,
  { note, ...entry }: Omit<AuditRow, 'sequence' | 'previousHash' | 'hash'>,
): AuditRow {
  const unsigned = {
    ...entry,
    // A text that is no Unicode is stored in another form than it has here.
    note: note.toWellFormed(),
    sequence: previous.sequence + 1,
    previousHash: previous.hash,
  };
  return { ...unsigned, hash: auditHash(unsigned) };
}

/** What is wrong with an entry, given the one that was found before it; one sentence for each fault. */
export function auditFaults(previous: AuditLink, entry: AuditRow): string[] {
  const { sequence, auditId } = entry;
  const named = `Entry ${sequence} (${auditId})`;
  return [
    ...linkFaults(previous, entry).map((fault) => `${named} ${fault}`),
    ...(auditHash(entry).equals(entry.hash) ? [] : [`${named} was changed: it does not have its hash.`]),
  ];
}

function linkFaults(previous: AuditLink, { sequence, previousHash }: AuditRow): string[] {
  const missing = sequence - previous.sequence - 1;
  if (missing < 0) return [`has the number of another entry.`];
  if (missing > 0) return [`follows entry ${previous.sequence}: ${missing} between them are missing.`];
  return previousHash.equals(previous.hash) ? [] : [`does not have the hash of the entry before it.`];
}
