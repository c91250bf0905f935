/**
 * What the service's role may do in the database, table by table. The role owns nothing, reads every table and
 * truncates none. So a fault in the service cannot change what is permanent, and cannot drop or disable its triggers.
 * `migrate` grants exactly this list, as the owner of the tables.
 *
 * A new table needs an entry here: `tsc` fails without one, and so does test/db/privilege.test.ts.
 */
import { getTableColumns, getTableName, is } from 'drizzle-orm';
import { PgTable } from 'drizzle-orm/pg-core';
import pg from 'pg';
import { roleSettings } from './database-session.ts';
import * as schema from './schema/index.ts';

type TableKey = {
  [Key in keyof typeof schema]: (typeof schema)[Key] extends PgTable ? Key : never;
}[keyof typeof schema];
type ColumnOf<Key extends TableKey> = Extract<keyof (typeof schema)[Key]['_']['columns'], string>;

type Privileges<Column extends string> = {
  readonly insert: boolean;
  readonly update: 'all' | readonly Column[] | { readonly allBut: readonly Column[] };
  readonly delete: boolean;
};

/** Rows are inserted, and never change or go. */
const PERMANENT = { insert: true, update: [], delete: false } as const;
/** Rows change, and never go. */
const KEPT = { insert: true, update: 'all', delete: false } as const;
/** Rows change, and are deleted when they are done. */
const PASSING = { insert: true, update: 'all', delete: true } as const;

const SERVICE_PRIVILEGES: { readonly [Key in TableKey]: Privileges<ColumnOf<Key>> } = {
  apiKeys: {
    ...PERMANENT,
    update: { allBut: ['keyId', 'orgId', 'scope', 'environment', 'allowedCidrs', 'createdAt', 'createdBy'] },
  },
  auditEntries: PERMANENT,
  banklinkTokens: { ...PASSING, update: ['exchangedAt'] },
  certificates: PERMANENT,
  consumerSessions: { ...PASSING, update: ['endedAt'] },
  // Sealed and hashed again under other keys.
  consumers: { ...PERMANENT, update: ['contactHash', 'pepperId', 'contactSealed'] },
  events: PERMANENT,
  evidence: { ...PERMANENT, update: ['pending'] },
  idempotencyKeys: PERMANENT,
  idempotencySecrets: PASSING,
  keyReissues: { ...PERMANENT, update: ['confirmedBy', 'keyId'] },
  launchGateApprovals: PERMANENT,
  launchGateEvidence: { ...PERMANENT, update: ['revokedAt', 'revokedBy'] },
  operators: { ...PERMANENT, update: ['tokenHash', 'pepperId', 'revokedBy', 'revokedAt'] },
  organizations: { ...PERMANENT, update: ['suspendedAt', 'tier', 'limits'] },
  otpChallenges: PASSING,
  outbox: PASSING,
  postings: PERMANENT,
  // Sealed again under another key.
  providerEvents: { ...PERMANENT, update: ['bodySealed'] },
  quotaUses: { ...PERMANENT, update: ['used'] },
  quotes: PERMANENT,
  rateLimits: PASSING,
  // Triggers write it, as the owner of the tables.
  recipientMetadata: { ...PERMANENT, insert: false },
  recipientErasures: { ...PERMANENT, update: ['confirmedBy'] },
  recipients: { ...PERMANENT, update: { allBut: ['recipientId', 'orgId', 'createdAt'] } },
  reviewRequests: { ...PERMANENT, update: { allBut: ['settlementId'] } },
  settlementExceptions: PERMANENT,
  // Triggers write it, as the owner of the tables.
  settlementMetadata: { ...PERMANENT, insert: false },
  settlementTransitions: PERMANENT,
  serviceKeys: { insert: true, update: [], delete: true },
  settlements: {
    ...PERMANENT,
    update: {
      allBut: [
        'settlementId',
        'orgId',
        'origin',
        'corridor',
        'recipientId',
        'payeeSealed',
        'payeeSha256',
        'paymentMethod',
        'payoutRail',
        'amountMinor',
        'sourceCurrency',
        'destinationAmountMinor',
        'destinationCurrency',
        'rateMillionths',
        'inputFeeMinor',
        'platformFeeMinor',
        'totalFeesMinor',
        'reference',
        'metadata',
        'environment',
        'createdAt',
      ],
    },
  },
  sweeps: { ...KEPT, insert: false },
  verifications: {
    ...PERMANENT,
    update: { allBut: ['verificationId', 'orgId', 'recipientId', 'subjectSealed', 'subjectDigest', 'createdAt'] },
  },
  wallets: PERMANENT,
  webhookAttempts: PERMANENT,
  webhookDeliveries: { ...PERMANENT, update: { allBut: ['deliveryId', 'orgId', 'webhookId', 'eventId', 'createdAt'] } },
  webhookEarlierSecrets: PASSING,
  webhookReplays: {
    ...PERMANENT,
    update: ['status', 'sent', 'skipped', 'reachedAt', 'reachedId', 'finishedAt'],
  },
  webhooks: { ...PERMANENT, update: { allBut: ['webhookId', 'orgId', 'createdAt'] } },
};

/** Tables that only migrations write. The last is drizzle's own, which readiness reads. */
const READ_ONLY = [
  'public.settlement_transition_rules',
  'public.verification_transition_rules',
  'drizzle.__drizzle_migrations',
];

/**
 * What the role may do by functions of the owner. Each holds its own bounds, because the role gives the arguments. No
 * other role may call them.
 */
const OWNER_FUNCTIONS = [
  'public.add_partitions(integer)',
  'public.drop_expired_partition(integer, integer)',
  'public.delete_expired_deliveries(integer, integer)',
  // Of the released version.
  'public.delete_expired_events(integer, integer)',
];

type TablePrivileges = {
  /** With its schema. */
  readonly table: string;
  readonly insert: boolean;
  /** The columns that may be updated, by their names in the database. */
  readonly update: 'all' | readonly string[];
  readonly delete: boolean;
};

/** The list by the names of the database. */
export function listServicePrivileges(): TablePrivileges[] {
  const tables: Readonly<Record<string, unknown>> = schema;
  const own = Object.entries(SERVICE_PRIVILEGES).flatMap(([key, privileges]: [string, Privileges<string>]) => {
    const table = tables[key];
    return is(table, PgTable)
      ? [{ ...privileges, table: `public.${getTableName(table)}`, update: columnNames(table, privileges.update) }]
      : [];
  });
  return [...own, ...READ_ONLY.map((table) => ({ table, insert: false, update: [], delete: false }))];
}

function columnNames(table: PgTable, update: Privileges<string>['update']): TablePrivileges['update'] {
  if (update === 'all') return 'all';
  const columns = Object.entries(getTableColumns(table));
  const isGranted = ([key]: [string, unknown]): boolean =>
    'allBut' in update ? !update.allBut.includes(key) : update.includes(key);
  return columns.filter(isGranted).map(([, { name }]) => name);
}

/** Why a database is not migrated, in one sentence. */
export class MigrationError extends Error {}

/** @throws MigrationError when the role does not exist */
export async function refuseMissingRole(owner: pg.ClientBase, serviceRole: string): Promise<void> {
  const { rowCount } = await owner.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [serviceRole]);
  if (rowCount === 1) return;
  const role = pg.escapeIdentifier(serviceRole);
  throw new MigrationError(`The database has no role ${role}: create it (docs/operations.md, "Database roles").`);
}

/**
 * Takes every privilege from the role, and grants it those of the list, in the open transaction.
 *
 * @param owner a connection of the role that owns the tables
 */
export async function grantServicePrivileges(owner: pg.ClientBase, serviceRole: string): Promise<void> {
  const role = pg.escapeIdentifier(serviceRole);
  for (const statement of [...(await revocations(owner, role)), ...grants(role)]) await owner.query(statement);
}

/** SQLSTATE. */
const INSUFFICIENT_PRIVILEGE = '42501';

/**
 * Only a pooler needs them. An owner that may not alter roles cannot give them, and then a process that is behind a
 * pooler says what is missing.
 */
export async function giveSettings(owner: pg.ClientBase, serviceRole: string): Promise<void> {
  const { rows } = await owner.query<{ database: string }>('SELECT quote_ident(current_database()) AS database');
  try {
    for (const statement of roleSettings(pg.escapeIdentifier(serviceRole), rows[0]?.database ?? ''))
      await owner.query(statement);
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || error.code !== INSUFFICIENT_PRIVILEGE) throw error;
  }
}

/**
 * Also from PUBLIC, which every role belongs to: databases that were created before PostgreSQL 15 let it create tables.
 */
async function revocations(owner: pg.ClientBase, role: string): Promise<string[]> {
  const { rows } = await owner.query<{ database: string; relations: string | null }>(`
    SELECT quote_ident(current_database()) AS database,
      string_agg(format('%I.%I', nspname, relname), ', ') FILTER (WHERE relname IS NOT NULL) AS relations
    FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname IN ('public', 'drizzle') AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
      AND pg_has_role(relowner, 'MEMBER')`);
  const [{ database, relations } = { database: '', relations: null }] = rows;
  const schemas = ['public', 'drizzle'].map((name) => `REVOKE ALL ON SCHEMA ${name} FROM ${role}`);
  return [
    ...(relations === null ? [] : [`REVOKE ALL ON ${relations} FROM ${role}`]),
    ...schemas,
    'REVOKE CREATE ON SCHEMA public FROM PUBLIC',
    `REVOKE CREATE, TEMPORARY ON DATABASE ${database} FROM PUBLIC, ${role}`,
  ];
}

function grants(role: string): string[] {
  const tables = listServicePrivileges();
  const grant = (privilege: string, isGranted: (table: TablePrivileges) => boolean): string =>
    `GRANT ${privilege} ON ${tables
      .filter(isGranted)
      .map(({ table }) => table)
      .join(', ')} TO ${role}`;
  return [
    `GRANT USAGE ON SCHEMA public, drizzle TO ${role}`,
    `GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO ${role}`,
    `GRANT EXECUTE ON FUNCTION ${OWNER_FUNCTIONS.join(', ')} TO ${role}`,
    grant('SELECT', () => true),
    grant('INSERT', (table) => table.insert),
    grant('DELETE', (table) => table.delete),
    grant('UPDATE', ({ update }) => update === 'all'),
    ...tables.flatMap(({ table, update }) =>
      update === 'all' || update.length === 0 ? [] : [`GRANT UPDATE (${update.join(', ')}) ON ${table} TO ${role}`],
    ),
  ];
}
