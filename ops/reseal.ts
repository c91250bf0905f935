/**
 * `keys reseal`: seals again, with the active key, every text that another configured key has sealed, and hashes again
 * the contacts of consumers, with the active pepper. Each page is a statement of its own, so the command can be
 * interrupted and repeated, and it can run while the service runs.
 */
import type { Pepper } from '../config/environment.ts';
import type { Tx } from '../db/client.ts';
import { commit } from '../db/commands/commit.ts';
import { insertAuditEntry } from '../db/queries/audit.ts';
import { listConsumersToRehash, setContactHash } from '../db/queries/consumer.ts';
import {
  listSealed,
  replaceSealed,
  SEALED_COLUMNS,
  type SealedColumn,
  sealedColumnName,
} from '../db/queries/sealed.ts';
import { createSealer, type Sealer } from '../db/seal.ts';
import { consumerContactBinding } from '../domain/consumer.ts';
import { hashConsumerContact } from '../process/contact-hash.ts';
import type { OpsDeps } from './command.ts';
import { EXIT, type ExitCode } from './command-line/program.ts';
import type { KeysAct } from './keys.ts';
import { requireKnownKeys } from './service-key.ts';

const PAGE_SIZE = 200;
/** A row that another transaction uses is left for the next pass. */
const PASSES_MAX = 5;

type Tally = { readonly resealed: number; readonly busy: number; readonly unreadable: number };

/**
 * @param recordChanges writes the audit entries of changed key lists and returns a sentence for each
 * @returns `refused` when a row is still sealed by another key, because it is in use or cannot be opened
 * @throws CommandError when no process has the active keys; nothing was changed
 */
export async function reseal(
  deps: OpsDeps,
  act: KeysAct,
  recordChanges: (tx: Tx) => Promise<readonly string[]>,
): Promise<ExitCode> {
  await requireKnownKeys(deps);
  const [active] = deps.keys.encryptionKeys;
  // Resealing takes many transactions, so the audit entry is written before the first one.
  const changes = await commit(deps, 'keys.reseal', async (tx) => {
    await insertAuditEntry(tx, null, {
      objectId: `ENCRYPTION_KEYS:${active.id}`,
      action: 'keys_reseal',
      ...act,
      at: deps.now(),
    });
    return await recordChanges(tx);
  });
  for (const change of changes) deps.print(change);
  const sealer = createSealer(deps.keys.encryptionKeys);
  const tallies: (Tally & { readonly column: string })[] = [];
  for (const sealed of SEALED_COLUMNS) {
    const column = sealedColumnName(sealed);
    const tally = await resealColumn(deps, sealer, sealed);
    deps.print(`${column}: ${tally.resealed} sealed by ${active.id}${restOf(tally)}`);
    tallies.push({ column, ...tally });
  }
  const [pepper] = deps.keys.apiKeyPeppers;
  const { rehashed, left } = await rehashConsumers(deps, sealer, pepper);
  deps.print(
    `contact_hash: ${rehashed} hashed under ${pepper.id}${left > 0 ? `, ${left} left: their contacts have another consumer` : ''}`,
  );
  deps.printData({
    key: active.id,
    rehashed_consumers: rehashed,
    left_consumers: left,
    columns: tallies,
  });
  return tallies.every(({ busy, unreadable }) => busy + unreadable === 0) ? EXIT.done : EXIT.refused;
}

/**
 * A hash is replaced by one of the same contact, so it does not matter who else replaces it meanwhile. A contact whose
 * owner has signed in while the older pepper was missing has two consumers, and the later one keeps it.
 */
async function rehashConsumers(
  { db }: OpsDeps,
  sealer: Sealer,
  pepper: Pepper,
): Promise<{ readonly rehashed: number; readonly left: number }> {
  let [rehashed, left, after] = [0, 0, ''];
  for (;;) {
    const page = await listConsumersToRehash(db, pepper.id, after, PAGE_SIZE);
    for (const { consumerId, channel, contactSealed } of page) {
      // One that no configured key opens is counted above.
      const address = sealer.tryOpen(contactSealed, consumerContactBinding(consumerId))?.toString();
      if (address === undefined) continue;
      if (await setContactHash(db, consumerId, hashConsumerContact(pepper, { channel, address }))) rehashed += 1;
      else left += 1;
    }
    const last = page.at(-1);
    if (!last) return { rehashed, left };
    after = last.consumerId;
  }
}

const restOf = ({ busy, unreadable }: Tally): string =>
  [
    ...(busy > 0 ? [`, ${busy} in use: run it again`] : []),
    ...(unreadable > 0 ? [`, ${unreadable} UNREADABLE by the configured keys`] : []),
  ].join('');

async function resealColumn(deps: OpsDeps, sealer: Sealer, sealed: SealedColumn): Promise<Tally> {
  let tally = await pass(deps, sealer, sealed);
  let { resealed } = tally;
  for (let passes = 1; tally.busy > 0 && passes < PASSES_MAX; passes += 1) {
    tally = await pass(deps, sealer, sealed);
    resealed += tally.resealed;
  }
  return { ...tally, resealed };
}

/** Reads the column once, from its first page to its last. */
async function pass({ db, keys }: OpsDeps, sealer: Sealer, sealed: SealedColumn): Promise<Tally> {
  const current = `${keys.encryptionKeys[0].id}.`;
  let [asked, resealed, unreadableCount] = [0, 0, 0];
  let after: readonly string[] | undefined;
  for (;;) {
    const page = await listSealed(db, sealed, after, PAGE_SIZE);
    const old = page.flatMap(({ key, text }) =>
      text === null || text.startsWith(current) ? [] : [{ key, from: text }],
    );
    const changes = old.flatMap(({ key, from }) => {
      const binding = sealed.bindingOf(key);
      const plain = sealer.tryOpen(from, binding);
      return plain === undefined ? [] : [{ key, from, to: sealer.seal(plain, binding) }];
    });
    resealed += await replaceSealed(db, sealed, changes);
    asked += changes.length;
    unreadableCount += old.length - changes.length;
    const last = page.at(-1);
    if (!last || page.length < PAGE_SIZE) return { resealed, busy: asked - resealed, unreadable: unreadableCount };
    after = last.key;
  }
}
