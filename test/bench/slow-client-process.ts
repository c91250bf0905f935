/** Slow clients in a process of their own, so that what they cost the one who measures is not taken for the server's. */
import { openSlowClients } from './slow-client.ts';

/** Told to the parent: once when all stand, and again when it asks. */
export type SlowClientReport = {
  readonly open: number;
  readonly ended: readonly (readonly [status: number, count: number])[];
};

/** Clients of a network do not come in one instant. */
const ARRIVAL_MS = 5_000;

const [host = '', port = '', count = ''] = process.argv.slice(2);
const clients = await openSlowClients({ host, port: Number(port) }, Number(count), ARRIVAL_MS);
const report = () => process.send?.({ open: clients.open(), ended: [...clients.ended] } satisfies SlowClientReport);
process.on('message', report);
process.on('disconnect', () => process.exit());
report();
