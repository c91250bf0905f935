/**
 * Sabotages: each breaks one promise of the service by SQL in the run's own database, so that a run shows that the
 * suite finds it. The product contains nothing of this.
 */
import { queryOnce } from '../support/connection.ts';

/** A trigger that runs this code for each row. */
const trigger = (name: string, when: string, code: string): string =>
  `CREATE FUNCTION sabotage_${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${code} END $$;
   CREATE TRIGGER sabotage_${name} ${when} FOR EACH ROW EXECUTE FUNCTION sabotage_${name}();`;

const SABOTAGES = {
  /** No row of the outbox can be claimed. */
  dispatcher_off: trigger('dispatcher', 'BEFORE UPDATE ON outbox', 'RETURN NULL;'),
  /** A provider event that comes twice counts twice. */
  unique_index_dropped:
    'ALTER TABLE provider_events DROP CONSTRAINT provider_events_provider_event_id_pk; DROP INDEX evidence_event;',
  /** A row of the outbox is deleted when it is claimed: what its dispatch does not deliver is lost. */
  signal_is_the_only_carrier: trigger(
    'carrier',
    'AFTER UPDATE ON outbox',
    'DELETE FROM outbox WHERE outbox_id = NEW.outbox_id; RETURN NULL;',
  ),
  /** The payout is recorded twice, as an activity that ran twice would do. */
  activity_not_idempotent: trigger(
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
  /** What the payer takes back does not end the settlement. */
  return_ignored: trigger(
    'return',
    'BEFORE INSERT ON evidence',
    'IF NEW.reversed_minor > 0 THEN NEW.pending := false; END IF; RETURN NEW;',
  ),
  /** A settlement ends without booking what is due back. */
  refund_missing: `DROP TRIGGER settlements_journal_closed ON settlements; ${trigger(
    'refund',
    'BEFORE INSERT ON postings',
    `IF NEW.step IN ('rejected', 'expired', 'failed', 'canceled') THEN RETURN NULL; END IF; RETURN NEW;`,
  )}`,
} as const satisfies Record<string, string>;
export type SabotageName = keyof typeof SABOTAGES;
export const SABOTAGE_NAMES = Object.keys(SABOTAGES) as SabotageName[];

export const sabotage = async (migrationUrl: string, name: SabotageName): Promise<void> =>
  void (await queryOnce(migrationUrl, SABOTAGES[name]));
