/**
 * `keys reseal`: seals anew, by the active key, whatever another configured key has sealed. A page at a time, each a
 * statement of its own: it can be stopped anywhere, run again and run beside the service, and changes nothing twice.
 */
import type { Tx } from '../db/client.ts';
import { insertAuditEntry } from '../db/queries/audit.ts';
import { listSealed, replaceSealed, SEALED_COLUMNS, type SealedColumn } from '../db/queries/sealed.ts';
import { createSealer, type Sealer } from '../db/seal.ts';
import type { OpsDeps } from './command.ts';
import type { KeysAct } from './keys.ts';

const PAGE_SIZE = 200;
/** A row that is in use is left for the next pass. */
const PASSES_MAX = 5;

type Tally = { readonly resealed: number; readonly busy: number; readonly unreadable: number };

/** @returns whether everything is sealed by the active key now */
export async function reseal(
  deps: OpsDeps,
  act: KeysAct,
  recordChanges: (deps: OpsDeps, tx: Tx, act: KeysAct) => Promise<string[]>,
): Promise<boolean> {
  const [active] = deps.keys.encryptionKeys;
  // The deed takes many transactions: what is kept of it for ever is written before the first.
  const changes = await deps.db.transaction(async (tx) => {
    await insertAuditEntry(tx, null, {
      objectId: `ENCRYPTION_KEYS:${active.id}`,
      action: 'keys_reseal',
      ...act,
      at: deps.now(),
    });
    return await recordChanges(deps, tx, act);
  });
  for (const change of changes) deps.print(change);
  const sealer = createSealer(deps.keys.encryptionKeys);
  const tallies = [];
  for (const sealed of SEALED_COLUMNS) {
    const tally = await resealColumn(deps, sealer, sealed);
    deps.print(
      `${nameOf(sealed)}: ${tally.resealed} sealed by ${active.id}${tally.busy > 0 ? `, ${tally.busy} in use: run it again` : ''}${unreadable(tally)}`,
    );
    tallies.push(tally);
  }
  return tallies.every((tally) => tally.busy === 0 && tally.unreadable === 0);
}

const nameOf = ({ column }: SealedColumn): string => column.name;
const unreadable = (tally: Tally): string =>
  tally.unreadable > 0 ? `, ${tally.unreadable} UNREADABLE by the configured keys` : '';

async function resealColumn(deps: OpsDeps, sealer: Sealer, sealed: SealedColumn): Promise<Tally> {
  let tally = await pass(deps, sealer, sealed);
  let { resealed } = tally;
  for (let passes = 1; tally.busy > 0 && passes < PASSES_MAX; passes += 1) {
    tally = await pass(deps, sealer, sealed);
    resealed += tally.resealed;
  }
  return { ...tally, resealed };
}

/** Goes through the column once. */
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
      const plain = sealer.open(from, binding);
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
