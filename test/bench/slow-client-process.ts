/** Slow clients in a process of their own, so that their work does not slow down the process that measures. */
import { openSlowClients } from './slow-client.ts';

/** Sent to the parent process when all clients are connected, and whenever it asks. */
export type SlowClientReport = {
  readonly open: number;
  readonly ended: readonly (readonly [status: number, count: number])[];
};

/** Real clients do not all arrive in the same instant. */
const ARRIVAL_MS = 5_000;

const [host = '', port = '', count = ''] = process.argv.slice(2);
const clients = await openSlowClients({ host, port: Number(port) }, Number(count), ARRIVAL_MS);
const report = () => process.send?.({ open: clients.open(), ended: [...clients.ended] } satisfies SlowClientReport);
process.on('message', report);
process.on('disconnect', () => process.exit());
report();
