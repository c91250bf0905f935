/**
 * Keys by hand. The configuration is what rotates a key: these say which keys are configured and what still hangs on
 * each, note for ever who changed them and why, and seal anew what an old one sealed. No key is ever printed.
 */
import type { Config } from '../config.ts';
import type { Database, Queryable, Tx } from '../db/client.ts';
import { countKeysByPepper } from '../db/queries/api-key.ts';
import { findLatestAuditEntry, insertAuditEntry } from '../db/queries/audit.ts';
import { countCertificatesByHeader } from '../db/queries/certificate.ts';
import { allowLongStatements } from '../db/queries/operator.ts';
import { countSealed, SEALED_COLUMNS } from '../db/queries/sealed.ts';
import { type Given, type OpsDeps, read, readArgs, readOperator, readText, UsageError } from './command.ts';
import { reseal } from './reseal.ts';

export const KEYS_USAGE = [
  'keys list',
  'keys record --operator <name> --note <why>',
  'keys reseal --operator <name> --note <why>',
] as const;

export type KeyRing = Pick<Config, 'encryptionKeys' | 'apiKeyPeppers' | 'certificateSigningKeys' | 'payloadKeys'>;

const VERBS = ['list', 'record', 'reseal'] as const;
const UNKNOWN = 'unknown';

/** What operators call each list, by its variable. */
const LISTS = [
  ['ENCRYPTION_KEYS', ({ encryptionKeys }: KeyRing) => encryptionKeys],
  ['API_KEY_PEPPER', ({ apiKeyPeppers }: KeyRing) => apiKeyPeppers],
  ['CERTIFICATE_SIGNING_KEY', ({ certificateSigningKeys }: KeyRing) => certificateSigningKeys],
  ['TEMPORAL_PAYLOAD_KEYS', ({ payloadKeys }: KeyRing) => payloadKeys ?? []],
] as const;
type ListName = (typeof LISTS)[number][0];
type CountedName = Exclude<ListName, 'TEMPORAL_PAYLOAD_KEYS'>;

/** @returns false when something is still sealed by a key that is not the active one */
export async function keysCommand(deps: OpsDeps, [name = '', ...args]: readonly string[]): Promise<boolean> {
  const verb = VERBS.find((candidate) => candidate === name);
  if (!verb) throw new UsageError([`There is no command keys ${JSON.stringify(name)}.`]);
  if (verb === 'list') {
    readArgs(args, [], 0);
    await list(deps);
    return true;
  }
  const act = readKeysAct(readArgs(args, ['operator', 'note'], 0));
  if (verb === 'reseal') return await reseal(deps, act, recordChanges);
  const changes = await deps.db.transaction((tx) => recordChanges(deps, tx, act));
  for (const change of changes) deps.print(change);
  if (changes.length === 0) deps.print('The keys are recorded as they are configured.');
  return true;
}

export type KeysAct = { readonly operator: string; readonly note: string };

const readKeysAct = (given: Given): KeysAct =>
  read({ operator: readOperator(given.operator), note: readText('--note', given.note) });

/**
 * Writes an audit entry for each list that is configured otherwise than it was last recorded.
 *
 * @returns a sentence each
 */
async function recordChanges(deps: OpsDeps, tx: Tx, { operator, note }: KeysAct): Promise<string[]> {
  const changes: string[] = [];
  for (const [name, keysOf] of LISTS) {
    const [now, before] = [idsOf(keysOf(deps.keys)), await recordedIds(tx, name)];
    if (now === (before?.ids ?? '')) continue;
    const change = `${name} from ${before?.ids ?? 'nothing recorded'} to ${now || 'none'}`;
    await insertAuditEntry(tx, null, {
      objectId: `${name}:${now}`,
      action: 'keys_record',
      operator,
      note: `${change}: ${note}`,
      at: deps.now(),
    });
    changes.push(`Recorded: ${change}.`);
  }
  return changes;
}

const idsOf = (keys: readonly { readonly id: string }[]): string => keys.map(({ id }) => id).join(',');

async function recordedIds(db: Queryable, name: ListName) {
  const entry = await findLatestAuditEntry(db, 'keys_record', `${name}:`);
  return entry && { ids: entry.objectId.slice(name.length + 1), operator: entry.operator, at: entry.at };
}

async function list(deps: OpsDeps): Promise<void> {
  const uses = await deps.db.transaction(
    async (tx) => {
      await allowLongStatements(tx);
      return {
        ENCRYPTION_KEYS: await sealedByKey(tx),
        API_KEY_PEPPER: await keysByPepper(tx, deps.now()),
        CERTIFICATE_SIGNING_KEY: await certificatesByKey(tx),
      };
    },
    { accessMode: 'read only' },
  );
  for (const [name, keysOf] of LISTS) {
    if (keysOf(deps.keys).length === 0) continue;
    deps.print(`${name}: ${await recordOf(deps.db, name, idsOf(keysOf(deps.keys)))}`);
    for (const line of name === 'TEMPORAL_PAYLOAD_KEYS'
      ? rolesOf(keysOf(deps.keys))
      : linesOf(name, keysOf(deps.keys), uses[name]))
      deps.print(`  ${line}`);
  }
}

async function recordOf(db: Database, name: ListName, now: string): Promise<string> {
  const recorded = await recordedIds(db, name);
  if (recorded?.ids === now) return `recorded by ${recorded.operator} at ${recorded.at.toISOString()}`;
  return `NOT RECORDED${recorded ? `, was ${recorded.ids}` : ''}: npm run ops -- keys record`;
}

/** What hangs on a key, and what that means for one that is old or gone. */
const WORDS: Record<CountedName, { readonly things: string; readonly old: string; readonly gone: string }> = {
  ENCRYPTION_KEYS: {
    things: 'sealed texts',
    old: 'still opens them; keys reseal',
    gone: 'NOT CONFIGURED, nothing can open them',
  },
  API_KEY_PEPPER: {
    things: 'API keys',
    old: 'still verifies them; they move as they are used',
    gone: 'NOT CONFIGURED, they are refused',
  },
  CERTIFICATE_SIGNING_KEY: {
    things: 'certificates',
    old: 'still published, for ever',
    gone: 'NOT CONFIGURED, they do not verify',
  },
};

/** What Temporal keeps is not ours to count. */
const rolesOf = (keys: readonly { readonly id: string }[]): string[] =>
  keys.map(
    ({ id }, place) => `${id}: ${place === 0 ? 'active' : 'still opens what histories hold; as long as they are kept'}`,
  );

function linesOf(
  name: CountedName,
  keys: readonly { readonly id: string }[],
  uses: ReadonlyMap<string, number>,
): string[] {
  const { things, old, gone } = WORDS[name];
  const configured = keys.map(({ id }, place) => {
    const count = uses.get(id) ?? 0;
    return `${id}: ${count} ${things}, ${place === 0 ? 'active' : count === 0 ? 'no longer needed by them' : old}`;
  });
  const strangers = [...uses].filter(([id]) => !keys.some((key) => key.id === id));
  return [
    ...configured,
    ...strangers.map(([id, count]) =>
      id === UNKNOWN ? `${count} ${things} not used since their pepper is noted` : `${id}: ${count} ${things}, ${gone}`,
    ),
  ];
}

async function sealedByKey(tx: Tx): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const column of SEALED_COLUMNS) {
    for (const { keyId, count } of await countSealed(tx, column)) counts.set(keyId, (counts.get(keyId) ?? 0) + count);
  }
  return counts;
}

async function keysByPepper(tx: Tx, at: Date): Promise<Map<string, number>> {
  return new Map((await countKeysByPepper(tx, at)).map(({ pepperId, count }) => [pepperId ?? UNKNOWN, count]));
}

async function certificatesByKey(tx: Tx): Promise<Map<string, number>> {
  return new Map((await countCertificatesByHeader(tx)).map(({ header, count }) => [keyIdOf(header), count]));
}

/** The `kid` of a JWS header. */
function keyIdOf(header: string): string {
  const parsed: unknown = JSON.parse(Buffer.from(header, 'base64url').toString());
  return typeof parsed === 'object' && parsed !== null && 'kid' in parsed ? String(parsed.kid) : UNKNOWN;
}
