/**
 * `scale`: what each call, step and operator's command costs beside a million settlements that have ended, compared
 * with the same beside none. Both databases have as many open ones. The two take turns. What is compared is the
 * processor time of the service and of PostgreSQL; pages are compared by their time.
 */
import { SWEEP_ID } from '../../domain/workflow-id.ts';
import { command, EXIT, type Printer } from '../../ops/command-line/program.ts';
import { signUp } from '../../scripts/sandbox/partner.ts';
import { fillHistory } from '../support/history-fill.ts';
import { withReceiver } from '../support/http-server.ts';
import { fillSettlements } from '../support/settlement-fill.ts';
import { type Bench, count, ROUNDS, report } from './bench.ts';
import { fill, measureLists, type Organizations } from './list.ts';
import { compareSides, createActs } from './scale-act.ts';
import { type BenchStack, type Product, withBenchStack } from './stack.ts';

export const SETTLEMENTS_OF_ORGANIZATION = 100;
const OPEN = 10_000;
/** What has ended did so two weeks ago: the metrics count what is recent. */
export const ENDED = {
  status: `(ARRAY['settled', 'settled', 'settled', 'canceled', 'failed'])[1 + n % 5]`,
  amount_received_minor: `CASE WHEN n % 5 < 3 THEN t.amount_minor ELSE 0 END`,
  created_at: `now() - interval '14 days' - n * interval '1 second'`,
  updated_at: `now() - interval '14 days' - n * interval '1 second'`,
} as const;
const WAITING = {
  status: `'awaiting_funds'`,
  amount_received_minor: '0',
  expires_at: `now() + interval '3 days'`,
  recipient_id: `'open ' || n`,
} as const;

export const scale: Bench = command({
  name: 'scale',
  description: 'The cost of each call, step and command beside a million settlements and beside none. 1 above a bound.',
  takes: {
    settlements: count('--settlements <count>', 'how many have ended', 1_000_000),
    open: count('--open <count>', 'how many are open in both databases', OPEN),
    rounds: ROUNDS,
  },
  run: (printer: Printer, { settlements, open, rounds }) =>
    withReceiver((url) =>
      withBenchStack((empty) =>
        withBenchStack(async (large) => {
          const beside = await prepare(large, { settlements, open });
          printer.warn(`${settlements} settlements are written`);
          const without = await prepare(empty, { settlements: 0, open });
          const compared = await compareSides(printer, rounds, {
            empty: await createActs(empty, without.product, url),
            large: await createActs(large, beside.product, url),
          });
          const lists = await measureLists(printer, large, beside.organizations, { ...beside, rounds });
          report(printer, 'scale', [compared.table, lists.table]);
          return compared.areWithin && lists.areFast ? EXIT.done : EXIT.refused;
        }),
      ),
    ),
});

/** Starts the product on a stack, and fills its database. The sweep would start a workflow for each open copy. */
async function prepare(
  stack: BenchStack,
  { settlements, open }: { readonly settlements: number; readonly open: number },
): Promise<{ readonly organizations: Organizations; readonly recipientId: string; readonly product: Product }> {
  const product = await stack.startProduct();
  await stack.temporal.client.schedule.getHandle(SWEEP_ID).pause();
  const api = { baseUrl: stack.apiUrl, attemptsMax: 1 };
  const organizations = { large: await signUp(api), small: await signUp(api), empty: await signUp(api) };
  const recipientId = await fill(stack, organizations, Math.floor(settlements / 3), ENDED);
  const { orgId, client } = organizations.large;
  const { webhook_id: webhookId } = await client.webhooks.create({ url: `${stack.apiUrl}/none`, event_types: ['*'] });
  if (settlements > 0)
    await fillHistory(stack.database, {
      ...{ orgId, webhookId },
      organizations: Math.ceil(settlements / SETTLEMENTS_OF_ORGANIZATION),
    });
  const { rows } = await stack.database.query(
    'SELECT settlement_id AS id FROM settlements WHERE recipient_id = $1 AND org_id <> ALL ($2)',
    [recipientId, [orgId, organizations.small.orgId]],
  );
  await fillSettlements(stack.database, stack.sealer, {
    ...{ orgId: (await signUp(api)).orgId, templateId: rows[0].id, settlements: open },
    columns: WAITING,
  });
  await stack.database.query('VACUUM (ANALYZE)');
  return { organizations, recipientId, product };
}
