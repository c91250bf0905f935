/** What the rules of plan.test.ts leave out, each with its reason. */
import { COUNTED_MAX } from '../../domain/page.ts';

/** A page of a list is merged from the newest rows of up to 16 ranges, and shows the history of each row. */
export const ROWS_MAX = 600;

/** They have a row for each operator, gate, kind or key of the service. */
const FEW = ['sweeps', 'service_keys', 'operators', 'launch_gate_evidence', 'launch_gate_approvals'];
const RULES = ['settlement_transition_rules', 'verification_transition_rules', '__drizzle_migrations', 'pg_inherits'];
/** They stay small: commands are refused while the outbox is full, and counts of requests are deleted after a day. */
const PASSING = ['outbox', 'rate_limits'];
export const SMALL_TABLES: readonly string[] = [...FEW, ...RULES, ...PASSING];

type Search = {
  /** A part of the text that only these statements contain. */
  readonly part: string;
  readonly rowsMax: number;
};

const part = (text: string, rowsMax = Number.POSITIVE_INFINITY): Search => ({ part: text, rowsMax });

/** Statements that may read more, and whole tables where they have no limit. */
export const SEARCHES: readonly Search[] = [
  // Lists are counted up to this limit; with a label of a named recipient, each row and its label are read.
  part('SELECT count(*)::int AS matches FROM', 2 * COUNTED_MAX + ROWS_MAX),
  // An operator sees the counts of so many deliveries of a subscription.
  part('FROM ( SELECT webhook_id, status, endings FROM webhook_deliveries', COUNTED_MAX + ROWS_MAX),
  // A comparison with the rail reads so many settlements, and a check of the audit chain so many entries at once.
  part('"settlements"."status" = $1 and "settlements"."updated_at" >= $2', 1_000 + ROWS_MAX),
  part('where ("audit_entries"."sequence", "audit_entries"."audit_id") >', 1_000 + ROWS_MAX),
  // Commands are refused beyond so many rows of the outbox. Counts of requests are deleted after a day.
  part('SELECT 1 FROM "outbox" OFFSET'),
  part('SELECT ctid FROM "rate_limits"'),
  // Metrics count what is open and what is recent.
  part('AS "oldestSeconds"'),
  // Usage adds up the days that are asked for.
  part(`SELECT 'settlement' AS kind, to_char(created_at`),
  // Two labels, or a subscription and what is pending: no index has both, so the rows with one are read.
  part('from "settlement_metadata" "wanted" where ("wanted"."org_id" = "settlement_metadata"."org_id"'),
  part(`"webhook_deliveries"."status" = 'pending' AND "webhook_deliveries"."endings"`),
  // An operator counts what is sealed, hashed or signed by each key: whole tables, and ten minutes for it.
  part('SELECT split_part("'),
  part('select split_part("signature"'),
  part('select "pepper_id", count(*) from'),
  // A change of the operators looks whether an organization is of another environment.
  part('from "organizations" where "organizations"."environment" <> $1'),
  // A process searches for what needs a key that it lacks, one process at a time, and is not ready meanwhile.
  part(`, '.', 1) = $1) AS found`),
  // An operator looks for a partner's own name, in each organization by its index; metadata of recipients has none.
  part('FROM organizations CROSS JOIN LATERAL'),
  part('where "recipient_metadata"."value" = $1'),
  // An operator's list with a filter that its order's index does not have.
  part('and "settlements"."org_id" = (SELECT org_id FROM recipients'),
  part('"webhook_deliveries"."status" in ($'),
  part('"webhook_deliveries"."status" = $1 and "webhook_deliveries"."'),
  part('from "audit_entries" where "audit_entries"."'),
  part(`AND key.scope = 'full' AND key.status = 'active'`),
  part('"webhooks" where "webhooks"."deleted_at" is not null order by'),
  part('from "evidence" inner join "settlements"'),
];

/**
 * Unique indexes that no statement reads: the table has few rows, or statements read another index. They refuse rows.
 */
export const GUARDS: readonly string[] = [
  ...['certificates_settlement', 'outbox_subscription', 'settlement_transitions_once'],
  ...['launch_gate_evidence_scope', 'operators_name', 'operators_token_hash'],
];

/**
 * Functions that make a part of a text when their file is imported, before the calls are counted; and `getAnswer`,
 * which sends what `findAnswer` sends, after a request has lost a race.
 */
export const isUncalled = (name: string): boolean => /(Sql|Text|rowOf| getAnswer)$/.test(name);
