/** `settlements`: the ids of the settlements that changed last. The completion of the other commands offers them. */
import { connect } from '../../db/client.ts';
import { listSettlementsBy } from '../../db/queries/operator-list.ts';
import { SETTLEMENT_STATUSES } from '../../domain/settlement.ts';
import { CommandError, command, EXIT } from '../../process/command-line.ts';
import { completeEnvironment } from '../../process/running-stack.ts';
import { NO_STACK, type SandboxCommand, type SandboxDeps } from './command.ts';

const SHOWN_MAX = 50;

export const settlements: SandboxCommand = command({
  name: 'settlements',
  description: 'Prints the ids of the settlements that changed last, one a line. The completion offers them.',
  takes: {},
  run: async ({ env, print, printData }: SandboxDeps) => {
    const databaseUrl = completeEnvironment(env)['DATABASE_URL'];
    if (!databaseUrl) throw new CommandError(EXIT.unavailable, `${NO_STACK}, or set DATABASE_URL.`);
    const connection = connect(databaseUrl, {
      poolSizeMax: 1,
      name: 'settlement-sandbox',
      onIdleError: () => undefined,
    });
    try {
      const listed = await listSettlementsBy(connection.db, { statuses: SETTLEMENT_STATUSES, limit: SHOWN_MAX });
      for (const { settlementId } of listed) print(settlementId);
      printData(listed.map(({ settlementId, status }) => ({ settlement_id: settlementId, status })));
      return EXIT.done;
    } finally {
      await connection.close();
    }
  },
});
