/** `show` of a name that a partner gave: a reference, an idempotency key, a value of a recipient's metadata. */
import { listNamed } from '../db/queries/operator/named.ts';
import { advice } from '../domain/operator-advice.ts';
import type { OpsDeps } from './command.ts';
import type { Report } from './report.ts';
import { settlementRow } from './report-row.ts';

/** @returns the id of the one object of that name, or a report of all of them; undefined for an unknown name */
export async function reportNamed({ db }: Pick<OpsDeps, 'db'>, name: string): Promise<string | Report | undefined> {
  const { settlements, keys, recipients } = await listNamed(db, name);
  const ids = new Set([
    ...settlements.map(({ settlementId }) => settlementId),
    ...keys.map(({ resourceId }) => resourceId),
    ...recipients.map(({ recipientId }) => recipientId),
  ]);
  const [first, ...others] = ids;
  if (first === undefined || others.length === 0) return first;
  return {
    kind: 'name',
    id: name,
    facts: {},
    lists: {
      settlements_with_this_reference: settlements.map(({ recipientId, orgId, ...settlement }) => ({
        ...settlementRow(settlement),
        recipient: recipientId,
        organization: orgId,
      })),
      requests_with_this_idempotency_key: keys.map(({ resourceId, orgId, createdAt }) => ({
        made: resourceId,
        at: createdAt,
        organization: orgId,
      })),
      recipients_with_this_metadata: recipients.map(({ recipientId, key, orgId, createdAt }) => ({
        recipient: recipientId,
        key,
        created_at: createdAt,
        organization: orgId,
      })),
    },
    next: [advice('Several objects have this name. To show one of them:', `npm run ops -- show ${first}`)],
  };
}
