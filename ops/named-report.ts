/** `show` of a name that a partner gave: a reference, an idempotency key, a value of a recipient's metadata. */
import { readLongSnapshot } from '../db/client.ts';
import { listNamed } from '../db/queries/operator/named.ts';
import { findObjectKind } from '../db/queries/operator/object-kind.ts';
import { advice } from '../domain/operator-advice.ts';
import type { OpsDeps } from './command.ts';
import type { Report } from './report.ts';
import { settlementRow } from './report-row.ts';

/**
 * @returns the id of the one object of that name, if it has a report; otherwise a report of all of them; undefined for
 *   an unknown name
 */
export async function reportNamed({ db }: Pick<OpsDeps, 'db'>, name: string): Promise<string | Report | undefined> {
  const { settlements, keys, recipients } = await readLongSnapshot(db, (tx) => listNamed(tx, name));
  const ids = new Set([
    ...settlements.map(({ settlementId }) => settlementId),
    ...keys.map(({ resourceId }) => resourceId),
    ...recipients.map(({ recipientId }) => recipientId),
  ]);
  if (ids.size === 0) return undefined;
  const first = await firstWithReport(db, ids);
  if (first !== undefined && ids.size === 1) return first;
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
    next: [
      first === undefined
        ? advice('None: what has this name has no report of its own.')
        : advice('Several objects have this name. To show one of them:', `npm run ops -- show ${first}`),
    ],
  };
}

/** A key may have made something that `show` does not know, such as a wallet. */
async function firstWithReport(db: OpsDeps['db'], ids: ReadonlySet<string>): Promise<string | undefined> {
  for (const id of ids) if ((await findObjectKind(db, id)) !== undefined) return id;
  return undefined;
}
