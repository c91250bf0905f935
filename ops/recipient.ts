/** Recipients: erasing the personal data of one, by two operators, and exporting all that is held about one. */
import { eraseRecipient } from '../db/commands/erasure.ts';
import {
  EXPORTED_MAX,
  exportRecipient,
  type RecipientExport,
  readRecipientExport,
} from '../db/commands/recipient-export.ts';
import { createSealer } from '../db/seal.ts';
import type { Payee } from '../domain/payee.ts';
import { recipientResource } from '../domain/resource/recipient.ts';
import { settlementDetail } from '../domain/resource/settlement.ts';
import { verificationDetail } from '../domain/resource/verification.ts';
import { AUDIT_PARAMETERS, changeCommand, newRequestId, type OpsCommand, type OpsDeps } from './command.ts';
import { required, text } from './command-line/parameter.ts';
import { EXIT, group } from './command-line/program.ts';
import { lineOf } from './report.ts';

const recipientId = required('<recipient-id>', 'the recipient', text);

export const eraseCommand: OpsCommand = group('erase', 'Erases personal data, permanently.', [
  changeCommand({
    name: 'recipient',
    description:
      "Makes the personal data of an inactive recipient, or of a consumer's, unreadable. The first operator requests it, a " +
      'second one confirms it.',
    takes: { recipientId, ...AUDIT_PARAMETERS },
    run: async (deps: OpsDeps, { recipientId: id, ...act }) => {
      const { isErased, expiresAt } = await eraseRecipient(deps, id, { ...act, requestId: newRequestId() });
      deps.print(
        isErased
          ? `${id} is erased: its data key is destroyed. Amounts, dates and certificates stay.`
          : `Requested. Another operator confirms it before ${expiresAt.toISOString()} by the same command.`,
      );
      if (isErased) deps.print('Backups from before still have the key. It is gone once the last of them is deleted.');
      deps.printData({ recipient: id, is_erased: isErased, confirm_before: isErased ? null : expiresAt });
      return EXIT.done;
    },
  }),
]);

const withSealer = (deps: OpsDeps) => ({ ...deps, sealer: createSealer(deps.keys.encryptionKeys) });

export const exportCommand: OpsCommand = group('export', 'Prints personal data in full, as JSON.', [
  changeCommand({
    name: 'recipient',
    description: 'Prints all that is held about a recipient: its data, verifications, settlements and stored answers.',
    takes: { recipientId, ...AUDIT_PARAMETERS },
    // A preview has no audit entry, so it shows no personal data.
    preview: async (deps: OpsDeps, { recipientId: id }) => {
      const exported = await readRecipientExport(withSealer(deps), id);
      const counts = {
        verifications: exported.verifications.length,
        settlements: exported.settlements.length,
        earlier_answers: exported.answers.length,
      };
      warnOfWhatIsMissing(deps, exported);
      deps.print(`Preview: ${lineOf({ recipient: id, ...counts })}`);
      deps.printData({ preview: { recipient: id, ...counts } });
      return EXIT.done;
    },
    run: async (deps: OpsDeps, { recipientId: id, ...act }) => {
      const exported = await exportRecipient(withSealer(deps), id, act);
      const data = documentOf(exported, deps.now());
      warnOfWhatIsMissing(deps, exported);
      deps.print(JSON.stringify(data, null, 2));
      deps.printData(data);
      return EXIT.done;
    },
  }),
]);

function warnOfWhatIsMissing({ warn }: OpsDeps, { recipient, settlements, answers }: RecipientExport): void {
  const { recipientId: id, erasedAt } = recipient;
  if (erasedAt) warn(`${id} was erased at ${erasedAt.toISOString()}: its personal data cannot be read by anybody.`);
  if (Math.max(settlements.length, answers.length) === EXPORTED_MAX)
    warn(`Only the newest ${EXPORTED_MAX} of each list are exported.`);
}

/** In the names of the interface, with what it masks or does not show. */
const documentOf = (
  { recipient, personalData, verifications, settlements, answers }: RecipientExport,
  exportedAt: Date,
) => ({
  exported_at: exportedAt,
  recipient: {
    ...recipientResource(recipient),
    bank_details: personalData?.bankDetails ?? null,
    mobile_details: personalData?.mobileDetails ?? null,
  },
  verifications: verifications.map((verification) => ({
    ...verificationDetail(verification),
    level_name: verification.levelName,
    subject_name: verification.subjectName,
    given_contact: verification.givenContact,
  })),
  settlements: settlements.map(({ frozenPayee, ...settlement }) => ({
    ...settlementDetail(settlement),
    payee: frozenPayee ? payeeOf(frozenPayee) : settlement.payee,
  })),
  earlier_answers: answers.map(({ createdAt, responseStatus, body }) => ({
    at: createdAt,
    status: responseStatus,
    // An answer that showed a secret is stored apart, without a copy here.
    body: body === '' ? null : (JSON.parse(body) as unknown),
  })),
});

const payeeOf = ({ name, country, entityType, rail, bankDetails, mobileDetails }: Payee) => ({
  name,
  country,
  entity_type: entityType,
  rail,
  bank_details: bankDetails,
  mobile_details: mobileDetails,
});
