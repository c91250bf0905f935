/**
 * The service's keys, and what stored data needs of them. A process that lacks a key, or has another one under its
 * name, could not read what others have written: it must not start.
 */
import { createHmac } from 'node:crypto';
import { and, eq, sql } from 'drizzle-orm';
import { type Database, DatabaseNotReadyError, type Queryable, readLongSnapshot, type Tx } from '../client.ts';
import { serviceKeys } from '../schema/service-key.ts';
import { countKeysByPepper } from './api-key.ts';
import { countCertificatesByHeader } from './certificate.ts';
import { countConsumersByPepper } from './consumer.ts';
import { countOperatorsByPepper } from './operator/token.ts';
import { countSealed, isSealedBy, SEALED_COLUMNS } from './sealed.ts';

/** How much needs each key of a list, by the key's id. They read whole tables. */
export const KEY_USES = {
  ENCRYPTION_KEYS: sealedByKey,
  API_KEY_PEPPER: hashesByPepper,
  CERTIFICATE_SIGNING_KEY: certificatesByKey,
} as const satisfies Record<string, (tx: Tx, at: Date) => Promise<ReadonlyMap<string, number>>>;

/** The lists of keys that stored data names. */
export type CountedList = keyof typeof KEY_USES;

/** Without these keys data would be lost. */
const NEEDED_LISTS = ['ENCRYPTION_KEYS', 'CERTIFICATE_SIGNING_KEY'] as const;
/** A pepper that is gone only refuses its API keys, as when it has leaked: it is recorded, and never needed. */
const LISTS = [...NEEDED_LISTS, 'API_KEY_PEPPER'] as const;

/** The keys of a process, by list; the first of a list is its active one. */
export type ServiceKeys = Readonly<
  Record<(typeof LISTS)[number], readonly { readonly id: string; readonly key: Buffer }[]>
>;

/** The key of the advisory lock: the same in every process, and no other lock's. Months have 7 146 302. */
const SEARCH_LOCK = 7_146_303;

/** A key that a process lacks. */
type LackingKey = { readonly list: (typeof NEEDED_LISTS)[number]; readonly keyId: string };

/**
 * Records the keys of a process, and compares them with those that processes had before.
 *
 * @param onSearch is called before whole tables are read for what needs a key
 * @throws DatabaseNotReadyError while another process reads them
 * @returns a sentence for each key that differs from the one of its name, and for each that is lacking and needed
 */
export async function checkServiceKeys(
  db: Database,
  keys: ServiceKeys,
  now: Date,
  onSearch: (key: LackingKey) => void = () => undefined,
): Promise<readonly string[]> {
  const own = LISTS.flatMap((list) =>
    keys[list].map(({ id, key }) => ({ list, keyId: id, fingerprint: fingerprintOf(key), firstUsedAt: now })),
  );
  const read = () => db.select().from(serviceKeys);
  let recorded = await read();
  // Nothing is written where nothing is new: the database may be read-only for now.
  if (own.some(({ list, keyId }) => !recorded.some((key) => key.list === list && key.keyId === keyId))) {
    await db.insert(serviceKeys).values(own).onConflictDoNothing();
    recorded = await read();
  }
  const faults: string[] = [];
  for (const { list, keyId, fingerprint } of recorded) {
    const same = own.find((key) => key.list === list && key.keyId === keyId);
    // A later version may record other lists.
    if (!LISTS.some((name) => name === list) || same?.fingerprint.equals(fingerprint)) continue;
    const needed = NEEDED_LISTS.find((name) => name === list);
    if (same) faults.push(anotherKey(list, keyId));
    else if (needed && (await isNeeded(db, { list: needed, keyId }, onSearch)))
      faults.push(`${list} lacks the key ${keyId}, which stored data needs`);
    else await db.delete(serviceKeys).where(and(eq(serviceKeys.list, list), eq(serviceKeys.keyId, keyId)));
  }
  return faults;
}

/**
 * Finds out whether the processes can read what these active keys seal or hash.
 *
 * @returns a sentence for each active key that no process has recorded, or that differs from the recorded one
 */
export async function findForeignKeys(
  db: Queryable,
  keys: Pick<ServiceKeys, 'ENCRYPTION_KEYS' | 'API_KEY_PEPPER'>,
): Promise<readonly string[]> {
  const recorded = await db.select().from(serviceKeys);
  return (['ENCRYPTION_KEYS', 'API_KEY_PEPPER'] as const).flatMap((list) =>
    keys[list].slice(0, 1).flatMap(({ id, key }) => {
      const same = recorded.find((other) => other.list === list && other.keyId === id);
      if (same?.fingerprint.equals(fingerprintOf(key))) return [];
      return [same ? anotherKey(list, id) : `${list} begins with ${id}, which no process has`];
    }),
  );
}

const anotherKey = (list: string, keyId: string): string =>
  `${list} has another key under the id ${keyId} than processes before`;

const fingerprintOf = (key: Buffer): Buffer => createHmac('sha256', key).update('fingerprint').digest();

/**
 * One process searches at a time. When nothing needs the key, it is forgotten, and the next process need not search.
 */
const isNeeded = (db: Database, key: LackingKey, onSearch: (key: LackingKey) => void): Promise<boolean> =>
  readLongSnapshot(db, async (tx) => {
    const { rows } = await tx.execute<{ own: boolean }>(sql`SELECT pg_try_advisory_xact_lock(${SEARCH_LOCK}) AS own`);
    if (rows[0]?.own !== true) throw new DatabaseNotReadyError();
    onSearch(key);
    if (key.list === 'CERTIFICATE_SIGNING_KEY') return (await certificatesByKey(tx)).has(key.keyId);
    for (const column of SEALED_COLUMNS) if (await isSealedBy(tx, column, key.keyId)) return true;
    return false;
  });

async function sealedByKey(tx: Tx): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const column of SEALED_COLUMNS) {
    for (const { keyId, count } of await countSealed(tx, column)) counts.set(keyId, (counts.get(keyId) ?? 0) + count);
  }
  return counts;
}

async function hashesByPepper(tx: Tx, at: Date): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  const found = [
    ...(await countKeysByPepper(tx, at)),
    ...(await countConsumersByPepper(tx)),
    ...(await countOperatorsByPepper(tx)),
  ];
  for (const { pepperId, count } of found) counts.set(pepperId, (counts.get(pepperId) ?? 0) + count);
  return counts;
}

async function certificatesByKey(tx: Tx): Promise<Map<string, number>> {
  return new Map((await countCertificatesByHeader(tx)).map(({ header, count }) => [signingKeyOf(header), count]));
}

/** The `kid` of a JWS, or of its header alone. */
export function signingKeyOf(signature: string): string {
  const parsed: unknown = JSON.parse(Buffer.from(signature.split('.')[0] ?? '', 'base64url').toString());
  return typeof parsed === 'object' && parsed !== null && 'kid' in parsed ? String(parsed.kid) : 'unknown';
}
