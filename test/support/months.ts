/** Partitions of the past, which a new database has none of, and none of the future, for tests of retention. */
import type pg from 'pg';

const TABLES = ['events', 'webhook_attempts', 'quotes'];

/** Replaces the partitions of an empty database by those that it would have if it were so many months older. */
export async function startMonthsAgo(owner: pg.Pool, months: number): Promise<void> {
  await owner.query(`DO $$
    DECLARE
      leaf text;
      parent text;
      bound text := id_at(date_trunc('month', now() AT TIME ZONE 'UTC' - interval '${months} months') AT TIME ZONE 'UTC');
    BEGIN
      FOR leaf IN SELECT name FROM partitions() LOOP EXECUTE format('DROP TABLE %I', leaf); END LOOP;
      FOREACH parent IN ARRAY '{${TABLES}}'::text[] LOOP
        EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (MINVALUE) TO (%L)', parent || '_first', parent, bound);
      END LOOP;
      PERFORM add_partitions(3);
    END $$`);
}

/** Drops the partitions after that of now. */
export async function dropComingMonths(owner: pg.Pool): Promise<void> {
  await owner.query(`DO $$ DECLARE leaf text; BEGIN
    FOR leaf IN SELECT name FROM partitions() WHERE from_at > now() LOOP EXECUTE format('DROP TABLE %I', leaf); END LOOP;
  END $$`);
}
