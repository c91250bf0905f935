/** What an id names. For an operator, as object.ts says. */
import { sql } from 'drizzle-orm';
import { EVENT_PROVIDERS } from '../../../domain/settlement/evidence.ts';
import { type Database, readLongSnapshot } from '../../client.ts';
import { listOfRequest } from './request.ts';

export const OBJECT_KINDS = [
  'settlement',
  'verification',
  'subscription',
  'delivery',
  'organization',
  'recipient',
  'certificate',
  'provider_event',
  'request',
] as const;
export type ObjectKind = (typeof OBJECT_KINDS)[number];

/**
 * What has this id; undefined for an unknown id. A caller can choose a request id, so it is the last to be searched.
 */
export async function findObjectKind(db: Database, id: string): Promise<ObjectKind | undefined> {
  const { rows } = await db.execute<{ kind: ObjectKind }>(sql`
    SELECT 'settlement' AS kind FROM settlements WHERE settlement_id = ${id}
    UNION ALL SELECT 'verification' FROM verifications WHERE verification_id = ${id}
    UNION ALL SELECT 'subscription' FROM webhooks WHERE webhook_id = ${id}
    UNION ALL SELECT 'delivery' FROM webhook_deliveries WHERE delivery_id = ${id}
    UNION ALL SELECT 'organization' FROM organizations WHERE org_id = ${id}
    UNION ALL SELECT 'recipient' FROM recipients WHERE recipient_id = ${id}
    UNION ALL SELECT 'certificate' FROM certificates WHERE cert_id = ${id}
    UNION ALL (SELECT 'provider_event' FROM provider_events
      WHERE provider = ANY (${sql.param([...EVENT_PROVIDERS])}) AND event_id = ${id} LIMIT 1)`);
  if (rows[0]) return rows[0].kind;
  const caused = await readLongSnapshot(db, (tx) => listOfRequest(tx, id));
  return Object.values(caused).some((list) => list.length > 0) ? 'request' : undefined;
}
