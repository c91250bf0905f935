/** Recipients: erasing the personal data of one, by two operators. */
import { eraseRecipient } from '../db/commands/erasure.ts';
import { AUDIT_PARAMETERS, changeCommand, type OpsCommand, type OpsDeps } from './command.ts';
import { required, text } from './command-line/parameter.ts';
import { EXIT, group } from './command-line/program.ts';

export const eraseCommand: OpsCommand = group('erase', 'Erases personal data, permanently.', [
  changeCommand({
    name: 'recipient',
    description:
      'Makes the personal data of an inactive recipient unreadable. The first operator requests it, a second one confirms it.',
    takes: { recipientId: required('<recipient-id>', 'the recipient', text), ...AUDIT_PARAMETERS },
    run: async (deps: OpsDeps, { recipientId, ...act }) => {
      const { isErased, expiresAt } = await eraseRecipient(deps, recipientId, act);
      deps.print(
        isErased
          ? `${recipientId} is erased: its data key is destroyed. Amounts, dates and certificates stay.`
          : `Requested. Another operator confirms it before ${expiresAt.toISOString()} by the same command.`,
      );
      if (isErased) deps.print('Backups from before still have the key. It is gone once the last of them is deleted.');
      deps.printData({ recipient: recipientId, is_erased: isErased, confirm_before: isErased ? null : expiresAt });
      return EXIT.done;
    },
  }),
]);
