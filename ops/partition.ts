/** `partitions`: the months of the tables that only grow, how large they are, and when they expire. */
import { listPartitions, type Partition } from '../db/queries/retention.ts';
import type { OpsCommand, OpsDeps } from './command.ts';
import { command, EXIT } from './command-line/program.ts';

const DAY_MS = 86_400_000;
const BYTES_OF_MB = 1_000_000;

/** The day on which a month expires. A later sweep drops it, once no delivery refers to it. */
function expiresOn({ table, to }: Partition, { events, quotes }: OpsDeps['retentionDays']): string {
  const days = table === 'quotes' ? quotes : events;
  return new Date(Date.parse(to) + days * DAY_MS).toISOString().slice(0, 10);
}

export const partitionsCommand: OpsCommand = command({
  name: 'partitions',
  description: 'The months of events, attempts and quotes: from, to, rows, size, and when each expires.',
  takes: {},
  run: async (deps: OpsDeps) => {
    const found = (await listPartitions(deps.db)).map((partition) => ({
      ...partition,
      expires_on: expiresOn(partition, deps.retentionDays),
    }));
    for (const { name, from, to, rows, bytes, expires_on } of found)
      deps.print(
        `${name}: ${from ?? 'the beginning'} to ${to}, ${rows < 0 ? 'not counted yet' : `about ${rows} rows`}, ` +
          `${(bytes / BYTES_OF_MB).toFixed(1)} MB, expires on ${expires_on}`,
      );
    deps.printData({ partitions: found });
    return EXIT.done;
  },
});
