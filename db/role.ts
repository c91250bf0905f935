/**
 * The service runs as a role that owns nothing (db/privilege.ts). Each new connection of a remote runtime is checked
 * before its first statement.
 */
import type pg from 'pg';

/** The role of DATABASE_URL could change what is permanent. */
export class DatabaseRoleError extends Error {
  constructor(role: string) {
    super(
      `The role "${role}" of DATABASE_URL owns the database or its tables: use a role that owns nothing (docs/operations.md, "Database roles").`,
    );
    this.name = 'DatabaseRoleError';
  }
}

/** A superuser is a member of every role. */
const OWNS = `
  SELECT current_user AS role, has_schema_privilege('public', 'CREATE')
    OR EXISTS (SELECT FROM pg_database WHERE datname = current_database() AND pg_has_role(datdba, 'MEMBER'))
    OR EXISTS (
      SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace AND pg_has_role(relowner, 'MEMBER')
    ) AS owns`;

/** @throws DatabaseRoleError */
export async function verifyRole(client: pg.ClientBase): Promise<void> {
  const {
    rows: [row],
  } = await client.query<{ role: string; owns: boolean }>(OWNS);
  if (row?.owns !== false) throw new DatabaseRoleError(row?.role ?? '');
}

/**
 * Why the service may not work with the role of DATABASE_URL, as a fault of the configuration. Undefined when it may,
 * and when PostgreSQL does not answer: that is no reason not to start. Every later connection is checked as well.
 */
export async function findRoleFault(pool: pg.Pool): Promise<string | undefined> {
  const error: unknown = await pool.query('SELECT').then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error instanceof DatabaseRoleError ? error.message : undefined;
}
