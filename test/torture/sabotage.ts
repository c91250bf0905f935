/**
 * Sabotages: each breaks one promise of the service by SQL in the run's own database, so that a run shows that the
 * suite finds it. The product contains nothing of this.
 */
import pg from 'pg';

type Sabotage = {
  /** Which promise is broken. */
  readonly what: string;
  readonly sql: string;
};

/** A trigger that runs this code for each row. */
const trigger = (name: string, when: string, code: string): string =>
  `CREATE FUNCTION sabotage_${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${code} END $$;
   CREATE TRIGGER sabotage_${name} ${when} FOR EACH ROW EXECUTE FUNCTION sabotage_${name}();`;

const SABOTAGES = {
  dispatcher_off: {
    what: 'No row of the outbox can be claimed.',
    sql: trigger('dispatcher', 'BEFORE UPDATE ON outbox', 'RETURN NULL;'),
  },
  unique_index_dropped: {
    what: 'A provider event that comes twice counts twice.',
    sql: 'ALTER TABLE provider_events DROP CONSTRAINT provider_events_provider_event_id_pk; DROP INDEX evidence_event;',
  },
  signal_is_the_only_carrier: {
    what: 'A row of the outbox is deleted when it is claimed: what its dispatch does not deliver is lost.',
    sql: trigger(
      'carrier',
      'AFTER UPDATE ON outbox',
      'DELETE FROM outbox WHERE outbox_id = NEW.outbox_id; RETURN NULL;',
    ),
  },
  activity_not_idempotent: {
    what: 'The payout is recorded twice, as an activity that ran twice would do.',
    sql: trigger(
      'activity',
      `AFTER INSERT ON evidence`,
      `IF NEW.kind = 'payout_confirmed' AND pg_trigger_depth() = 1 THEN
         INSERT INTO evidence (evidence_id, settlement_id, provider, event_id, kind, sha256, pending, reversed_minor,
           received_at)
         VALUES (gen_random_uuid()::text, NEW.settlement_id, NEW.provider, NEW.event_id || ':again', NEW.kind,
           NEW.sha256, false, 0, NEW.received_at);
       END IF;
       RETURN NULL;`,
    ),
  },
  return_ignored: {
    what: 'What the payer takes back does not end the settlement.',
    sql: trigger(
      'return',
      'BEFORE INSERT ON evidence',
      'IF NEW.reversed_minor > 0 THEN NEW.pending := false; END IF; RETURN NEW;',
    ),
  },
  refund_missing: {
    what: 'A settlement ends without booking what is due back.',
    sql: `DROP TRIGGER settlements_journal_closed ON settlements; ${trigger(
      'refund',
      'BEFORE INSERT ON postings',
      `IF NEW.step IN ('rejected', 'expired', 'failed', 'canceled') THEN RETURN NULL; END IF; RETURN NEW;`,
    )}`,
  },
} as const satisfies Record<string, Sabotage>;
export type SabotageName = keyof typeof SABOTAGES;
export const SABOTAGE_NAMES = Object.keys(SABOTAGES) as SabotageName[];

export const sabotageText = (name: SabotageName): string => SABOTAGES[name].what;

export async function sabotage(migrationUrl: string, name: SabotageName): Promise<void> {
  const client = new pg.Client({ connectionString: migrationUrl });
  await client.connect();
  try {
    await client.query(SABOTAGES[name].sql);
  } finally {
    await client.end();
  }
}
