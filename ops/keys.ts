/**
 * The keys. A key is rotated in the configuration. These commands show which keys are configured and what still needs
 * each of them, record in the audit who changed them and why, and seal stored texts again. No key is ever printed.
 */
import type { Config } from '../config/load.ts';
import { type Queryable, readLongSnapshot, type Tx } from '../db/client.ts';
import { commit } from '../db/commands/commit.ts';
import { findLatestAuditEntry, insertAuditEntry, lockAudit } from '../db/queries/audit.ts';
import { type CountedList, KEY_USES } from '../db/queries/service-key.ts';
import { AUDIT_PARAMETERS, changeCommand, type OpsCommand, type OpsDeps, timedCommand } from './command.ts';
import { EXIT, type ExitCode, group } from './command-line/program.ts';
import { reseal } from './reseal.ts';
import { requireKnownKeys } from './service-key.ts';

export type KeyRing = Pick<Config, 'encryptionKeys' | 'apiKeyPeppers' | 'certificateSigningKeys' | 'payloadKeys'>;
export type KeysAct = { readonly operator: string; readonly note: string };
/** The ids of a list's keys, joined by commas, before and after. */
type KeyChange = { readonly list: ListName; readonly from: string | undefined; readonly to: string };

export const keysCommands: OpsCommand = group('keys', 'Keys: what is configured, and what still needs each key.', [
  timedCommand({
    name: 'list',
    description: 'Lists the configured keys, how much needs each of them, and whether the list is recorded.',
    takes: {},
    run: list,
  }),
  changeCommand({
    name: 'record',
    description: 'Writes an audit entry for each list of keys that has changed.',
    takes: AUDIT_PARAMETERS,
    run: record,
  }),
  changeCommand({
    name: 'reseal',
    description: 'Seals again, with the active key, every text that an older key has sealed.',
    takes: AUDIT_PARAMETERS,
    // It takes many transactions, so the preview shows what still needs the older keys.
    preview: async (deps: OpsDeps) => {
      await requireKnownKeys(deps);
      return await list(deps);
    },
    run: (deps: OpsDeps, act) => reseal(deps, act, async (tx) => (await recordChanges(deps, tx, act)).map(sentenceOf)),
  }),
]);

/** Each list is named by its variable. */
const LISTS = [
  ['ENCRYPTION_KEYS', ({ encryptionKeys }: KeyRing) => encryptionKeys],
  ['API_KEY_PEPPER', ({ apiKeyPeppers }: KeyRing) => apiKeyPeppers],
  ['CERTIFICATE_SIGNING_KEY', ({ certificateSigningKeys }: KeyRing) => certificateSigningKeys],
  ['TEMPORAL_PAYLOAD_KEYS', ({ payloadKeys }: KeyRing) => payloadKeys ?? []],
] as const;
type ListName = (typeof LISTS)[number][0];

async function record(deps: OpsDeps, act: KeysAct): Promise<ExitCode> {
  const changes = await commit(deps, 'keys.record', (tx) => recordChanges(deps, tx, act));
  for (const change of changes) deps.print(sentenceOf(change));
  if (changes.length === 0) deps.print('Nothing has changed since the last record.');
  deps.printData({
    changes: changes.map(({ list: name, from, to }) => ({ list: name, from: listIds(from), to: listIds(to) })),
  });
  return EXIT.done;
}

/** Writes an audit entry for each list that differs from its last record. */
async function recordChanges(deps: OpsDeps, tx: Tx, { operator, note }: KeysAct): Promise<KeyChange[]> {
  await lockAudit(tx);
  const changes: KeyChange[] = [];
  for (const [name, keysOf] of LISTS) {
    const now = idsOf(keysOf(deps.keys));
    const before = await findRecord(tx, name);
    if (now === (before?.ids ?? '')) continue;
    const change = { list: name, from: before?.ids, to: now };
    await insertAuditEntry(tx, null, {
      objectId: `${name}:${now}`,
      action: 'keys_record',
      operator,
      note: `${textOf(change)}: ${note}`,
      at: deps.now(),
    });
    changes.push(change);
  }
  return changes;
}

const textOf = ({ list: name, from, to }: KeyChange): string =>
  `${name} from ${from ?? 'nothing recorded'} to ${to || 'none'}`;
const sentenceOf = (change: KeyChange): string => `Recorded: ${textOf(change)}.`;
const listIds = (ids: string | undefined): string[] | null =>
  ids === undefined ? null : ids.split(',').filter((id) => id !== '');

const idsOf = (keys: readonly { readonly id: string }[]): string => keys.map(({ id }) => id).join(',');

type KeyRecord = { readonly ids: string; readonly operator: string; readonly at: Date };

async function findRecord(db: Queryable, name: ListName): Promise<KeyRecord | undefined> {
  const entry = await findLatestAuditEntry(db, 'keys_record', `${name}:`);
  return entry && { ids: entry.objectId.slice(name.length + 1), operator: entry.operator, at: entry.at };
}

type KeyState = 'active' | 'old' | 'missing';
/** `count` is null for the keys of Temporal's histories: the service cannot count them. */
type KeyUse = { readonly id: string; readonly state: KeyState; readonly count: number | null };

async function list(deps: OpsDeps): Promise<ExitCode> {
  const lists = await readLongSnapshot(deps.db, async (tx) => {
    const counts = {
      ENCRYPTION_KEYS: await KEY_USES.ENCRYPTION_KEYS(tx),
      API_KEY_PEPPER: await KEY_USES.API_KEY_PEPPER(tx, deps.now()),
      CERTIFICATE_SIGNING_KEY: await KEY_USES.CERTIFICATE_SIGNING_KEY(tx),
      TEMPORAL_PAYLOAD_KEYS: undefined,
    };
    const found = [];
    for (const [name, keysOf] of LISTS) {
      const keys = keysOf(deps.keys);
      const recorded = await findRecord(tx, name);
      if (keys.length === 0 && !recorded?.ids) continue;
      found.push({ name, ids: idsOf(keys), recorded, uses: listUses(keys, counts[name]) });
    }
    return found;
  });
  for (const { name, ids, recorded, uses } of lists) {
    deps.print(`${name}: ${recordText(ids, recorded)}`);
    for (const use of uses) deps.print(`  ${useText(name, use)}`);
  }
  deps.printData({
    lists: lists.map(({ name, ids, recorded, uses }) => ({
      list: name,
      is_recorded: recorded?.ids === ids,
      recorded: recorded ? { ids: listIds(recorded.ids), operator: recorded.operator, at: recorded.at } : null,
      keys: uses.map(({ id, state, count }) => ({ id, state, count })),
    })),
  });
  return EXIT.done;
}

function recordText(ids: string, recorded: KeyRecord | undefined): string {
  if (recorded?.ids === ids) return `recorded by ${recorded.operator} at ${recorded.at.toISOString()}`;
  return `NOT RECORDED${recorded ? `, was ${recorded.ids}` : ''}: npm run ops -- keys record`;
}

/** The configured keys in their order, then the keys that are in use but not configured. */
function listUses(
  keys: readonly { readonly id: string }[],
  counts: ReadonlyMap<string, number> | undefined,
): readonly KeyUse[] {
  const configured = keys.map(({ id }, place) => ({
    id,
    state: place === 0 ? ('active' as const) : ('old' as const),
    count: counts === undefined ? null : (counts.get(id) ?? 0),
  }));
  const others = [...(counts ?? [])].filter(([id]) => !keys.some((key) => key.id === id));
  return [...configured, ...others.map(([id, count]) => ({ id, state: 'missing' as const, count }))];
}

type UseTexts = { readonly things: string; readonly old: string; readonly missing: string };

/** What needs a key, what an old key still does, and what happens without it. */
const USE_TEXTS: Record<CountedList, UseTexts> = {
  ENCRYPTION_KEYS: {
    things: 'sealed texts',
    old: 'still opens them; run keys reseal',
    missing: 'NOT CONFIGURED, nothing can open them',
  },
  API_KEY_PEPPER: {
    things: 'API keys, consumers and operators',
    old: 'still verifies them; each moves to the active pepper when it is used, consumers also by keys reseal',
    missing: 'NOT CONFIGURED, they are refused',
  },
  CERTIFICATE_SIGNING_KEY: {
    things: 'certificates',
    old: 'its public key stays published permanently',
    missing: 'NOT CONFIGURED, they do not verify',
  },
};

function useText(name: ListName, { id, state, count }: KeyUse): string {
  if (name === 'TEMPORAL_PAYLOAD_KEYS')
    return `${id}: ${state === 'active' ? 'active' : 'still opens histories, for as long as Temporal keeps them'}`;
  const { things, old, missing } = USE_TEXTS[name];
  const states = { active: 'active', old: count === 0 ? 'no longer needed by them' : old, missing };
  return `${id}: ${count} ${things}, ${states[state]}`;
}
