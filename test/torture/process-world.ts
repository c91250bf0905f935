/** The service as processes, as a place where crash points are passed. */
import { Client, Connection } from '@temporalio/client';
import { startMailServer } from '../support/mail-server.ts';
import { startProcessStack } from '../support/process-stack.ts';
import { SERVICE_ENV } from '../support/provider-event.ts';
import type { ProcessWorld } from './crash-walk.ts';
import { openWorld } from './crash-world.ts';
import { runOperator } from './operator.ts';

export async function openProcessWorld(): Promise<ProcessWorld> {
  const mail = await startMailServer({ disabledCommands: ['STARTTLS', 'AUTH'] });
  const stack = await startProcessStack({ env: { ...SERVICE_ENV, SMTP_URL: `smtp://127.0.0.1:${mail.port}` } });
  const connection = await Connection.connect({ address: stack.temporalAddress });
  const { baseUrl, databaseUrl, disturbedAt } = stack;
  const world = await openWorld({
    ...{ baseUrl, databaseUrl, disturbedAt, mail, temporal: new Client({ connection }) },
    operate: async (operator, args, point) => {
      const notes = args[0] === 'gate' && args[1] === 'record' ? [] : ['--note', 'torture'];
      const command = [...args, '--operator', operator, ...notes, '--yes'];
      const { all = '', signal, exitCode } = await runOperator(stack, command, { ...(point && { CRASH_AT: point }) });
      return { hasDied: signal === 'SIGKILL', exitCode, output: all };
    },
  });
  return {
    ...world,
    stack,
    close: async () => {
      await Promise.all([world.close(), connection.close()]);
      await Promise.all([stack.close(), mail.close()]);
    },
  };
}
