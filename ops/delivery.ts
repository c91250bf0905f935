/** Webhook deliveries, under the same lock and rules as the partner's own redelivery. */
import { redeliverAsOperator } from '../db/commands/webhook-delivery.ts';
import { command, EXIT } from '../process/command-line.ts';
import { required, text } from '../process/command-parameter.ts';
import { ACT, newRequestId, type OpsCommand, type OpsDeps } from './command.ts';

export const deliveryCommands: readonly OpsCommand[] = [
  command({
    name: 'retry-delivery',
    description: 'Attempts a pending delivery now, and sends a finished one again: the same bytes under the same id.',
    takes: { deliveryId: required('<delivery-id>', 'the delivery', text), ...ACT },
    run: async (deps: OpsDeps, { deliveryId, ...act }) => {
      await redeliverAsOperator(deps, deliveryId, { ...act, requestId: newRequestId() });
      deps.print(`${deliveryId} will be attempted again.`);
      deps.printData({ delivery_id: deliveryId });
      return EXIT.done;
    },
  }),
];
