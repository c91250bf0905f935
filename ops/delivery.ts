/** Webhook deliveries, under the same lock and rules as the partner's own redelivery. */
import { readLongSnapshot } from '../db/client.ts';
import { redeliverAsOperator } from '../db/commands/webhook-delivery.ts';
import type { OperatorAct } from '../db/queries/audit.ts';
import { listDeliveriesBy } from '../db/queries/operator/list.ts';
import { DomainError } from '../domain/error.ts';
import { environmentName } from '../domain/runtime.ts';
import { AUDIT_PARAMETERS, changeCommand, newRequestId, type OpsCommand, type OpsDeps } from './command.ts';
import { oneOf, optional, required, text, wholeNumber, withDefault } from './command-line/parameter.ts';
import { EXIT } from './command-line/program.ts';
import { olderThan, organization } from './list.ts';

/** The final states without a success, from which a delivery can be sent again. */
const RETRIED = ['exhausted', 'skipped'] as const;
const LIMIT_MAX = 1_000;
const MORE = `More remain: run the command again. --limit takes up to ${LIMIT_MAX} at once.`;

export const deliveryCommands: readonly OpsCommand[] = [
  changeCommand({
    name: 'retry-delivery',
    description: 'Attempts a pending delivery now, and sends a finished one again: the same bytes under the same id.',
    takes: { deliveryId: required('<delivery-id>', 'the delivery', text), ...AUDIT_PARAMETERS },
    run: async (deps: OpsDeps, { deliveryId, ...act }) => {
      await redeliverAsOperator(deps, deliveryId, { ...act, requestId: newRequestId() });
      deps.print(`${deliveryId} will be attempted again.`);
      deps.printData({ delivery_id: deliveryId });
      return EXIT.done;
    },
  }),
  changeCommand({
    name: 'retry-deliveries',
    description: 'Sends again what one subscription or organization did not get, oldest first.',
    takes: {
      status: withDefault('--status <status>', 'of these deliveries', oneOf(RETRIED), 'exhausted'),
      webhookId: optional('--webhook <id>', 'to this subscription', text),
      orgId: organization,
      olderThan,
      limit: withDefault('--limit <count>', 'at most this many', wholeNumber(1, LIMIT_MAX), '200'),
      ...AUDIT_PARAMETERS,
    },
    check: ({ webhookId, orgId }) =>
      webhookId === undefined && orgId === undefined ? ['Give --webhook or --org.'] : [],
    preview: async (deps: OpsDeps, selection) => {
      const { found, more } = await listSelected(deps, selection);
      deps.print(`Preview: ${found.length} deliveries will be attempted again.`);
      for (const webhookId of new Set(found.map((delivery) => delivery.webhookId))) {
        const deliveries = found.filter((delivery) => delivery.webhookId === webhookId);
        const [oldest, newest] = [deliveries[0]?.createdAt, deliveries.at(-1)?.createdAt];
        deps.print(
          `  ${deliveries.length} to webhook ${webhookId}, of ${oldest?.toISOString()} to ${newest?.toISOString()}`,
        );
      }
      if (more) deps.print(`Preview: ${MORE}`);
      deps.printData({ preview: { deliveries: found.map(({ deliveryId }) => deliveryId), more } });
      return EXIT.done;
    },
    run: async (deps: OpsDeps, { operator, note, ...selection }) => {
      const requestId = newRequestId();
      const retried: string[] = [];
      const { found, more } = await listSelected(deps, selection);
      for (const delivery of found) {
        const hindrance = await retry(deps, delivery, { operator, note, requestId });
        if (hindrance === undefined) retried.push(delivery.deliveryId);
        else deps.warn(`${delivery.deliveryId} is left out: ${hindrance}`);
      }
      deps.print(`${retried.length} deliveries will be attempted again.`);
      if (more) deps.print(MORE);
      deps.printData({ deliveries: retried, more });
      return EXIT.done;
    },
  }),
];

type Selection = {
  readonly status: (typeof RETRIED)[number];
  readonly webhookId: string | undefined;
  readonly orgId: string | undefined;
  readonly olderThan: number | undefined;
  readonly limit: number;
};

/** `more`: there are others beyond the limit. */
async function listSelected(deps: OpsDeps, { status, olderThan: ageMs, limit, ...selection }: Selection) {
  const before = ageMs === undefined ? undefined : new Date(deps.now().getTime() - ageMs);
  const sendableIn = environmentName(deps.runtime);
  const filter = { ...selection, limit: limit + 1, before, statuses: [status], oldestFirst: true, sendableIn };
  const listed = await readLongSnapshot(deps.db, (tx) => listDeliveriesBy(tx, filter));
  return { found: listed.slice(0, limit), more: listed.length > limit };
}

type Listed = Awaited<ReturnType<typeof listSelected>>['found'][number];

/** @returns what has happened to the delivery since it was listed; it is not sent then */
async function retry(deps: OpsDeps, { deliveryId, status }: Listed, act: OperatorAct): Promise<string | undefined> {
  try {
    await redeliverAsOperator(deps, deliveryId, act, status);
    return undefined;
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    return error.detail;
  }
}
