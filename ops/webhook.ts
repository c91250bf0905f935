/** `webhook disable` and `enable`: an endpoint must stop now, and later goes on. */
import { disableWebhookAsOperator, enableWebhookAsOperator } from '../db/commands/webhook.ts';
import { countDeliveriesTo } from '../db/queries/operator/delivery.ts';
import { maskUrl } from '../domain/mask.ts';
import { COUNTED_MAX } from '../domain/page.ts';
import { AUDIT_PARAMETERS, changeCommand, newRequestId, type OpsCommand, type OpsDeps } from './command.ts';
import { required, text } from './command-line/parameter.ts';
import { EXIT, group } from './command-line/program.ts';

const takes = { webhookId: required('<webhook-id>', 'the subscription', text), ...AUDIT_PARAMETERS };

/** Says how many deliveries it is about. Only the preview counts: a brake must not wait for a long count. */
async function sayHowMany({ db, print, isPreview }: OpsDeps, webhookId: string, of: 'pending' | 'skipped') {
  if (!isPreview) return;
  const { counts, isPartial } = await countDeliveriesTo(db, webhookId);
  const count = counts.find(({ status }) => status === of)?.count ?? 0;
  print(`${count} ${isPartial ? `of the latest ${COUNTED_MAX} ` : ''}deliveries are ${of} now.`);
}

export const webhookCommands: OpsCommand = group('webhook', 'Subscriptions of partners.', [
  changeCommand({
    name: 'disable',
    description: 'Stops all requests to an endpoint. Its owner cannot enable it, and sends nothing to it.',
    takes,
    run: async (deps: OpsDeps, { webhookId, ...act }) => {
      await sayHowMany(deps, webhookId, 'pending');
      const before = await disableWebhookAsOperator(deps, webhookId, { ...act, requestId: newRequestId() });
      const { orgId, url, disabledReason } = before;
      deps.print(`${webhookId} is disabled: no request to ${maskUrl(url)} begins any more.`);
      deps.print('Its pending deliveries are skipped, and so is every event until it is enabled.');
      deps.print(`Tell the partner ${orgId}. The way back: npm run ops -- webhook enable ${webhookId}`);
      if (disabledReason !== null)
        deps.print(
          `It was disabled before (${disabledReason}). The way back enables it nevertheless: ask the partner first.`,
        );
      deps.printData({ webhook: webhookId, status: 'disabled' });
      return EXIT.done;
    },
  }),
  changeCommand({
    name: 'enable',
    description: 'Enables a subscription that an operator has disabled.',
    takes,
    run: async (deps: OpsDeps, { webhookId, ...act }) => {
      await sayHowMany(deps, webhookId, 'skipped');
      const { url } = await enableWebhookAsOperator(deps, webhookId, { ...act, requestId: newRequestId() });
      deps.print(`${webhookId} is enabled: new events are sent to ${maskUrl(url)}.`);
      const retry = `retry-deliveries --webhook ${webhookId} --status skipped`;
      deps.print(`What was skipped stays so. To send it: npm run ops -- ${retry}`);
      deps.printData({ webhook: webhookId, status: 'enabled' });
      return EXIT.done;
    },
  }),
]);
