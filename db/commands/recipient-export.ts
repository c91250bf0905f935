/**
 * All that is held about one recipient, opened and without secrets, for a person who asks for it. The audit entry is
 * committed before anything of it is shown.
 */
import { DomainError } from '../../domain/error.ts';
import type { Payee } from '../../domain/payee.ts';
import type { PersonalData, Recipient } from '../../domain/recipient.ts';
import type { SettlementWithHistory } from '../../domain/resource/settlement.ts';
import { environmentName } from '../../domain/runtime.ts';
import type { Verification } from '../../domain/verification.ts';
import { readLongSnapshot } from '../client.ts';
import { openDataKey } from '../data-key.ts';
import { openPayee } from '../payee.ts';
import { insertAuditEntry, type OperatorAct } from '../queries/audit.ts';
import { type AnswerCopy, listAnswersAbout } from '../queries/idempotency-key.ts';
import { findRecipientRow } from '../queries/operator/recipient.ts';
import { listWholeVerificationsOf } from '../queries/operator/verification.ts';
import { getOrganization } from '../queries/organization.ts';
import { openRecipient } from '../queries/recipient.ts';
import { exportSettlements } from '../queries/settlement-history.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';

/** The most of each list, the newest first. */
export const EXPORTED_MAX = 50_000;

/** `personalData` and each `frozenPayee` are null, and `answers` is empty, once the recipient is erased. */
export type RecipientExport = {
  readonly recipient: Recipient;
  readonly personalData: PersonalData | null;
  readonly verifications: readonly Verification[];
  readonly settlements: readonly (SettlementWithHistory & { readonly frozenPayee: Payee | null })[];
  /** Stored answers to keyed requests: they have the personal data of their day. */
  readonly answers: readonly AnswerCopy[];
};

type Deps = CommitDeps & Pick<CommandDeps, 'now' | 'runtime' | 'sealer'>;

/**
 * Everything is of one moment.
 *
 * @throws DomainError `not_found`, for a recipient of another environment as well
 */
export const readRecipientExport = (
  { db, sealer, runtime }: Pick<Deps, 'db' | 'runtime' | 'sealer'>,
  recipientId: string,
) =>
  readLongSnapshot(db, async (tx): Promise<RecipientExport> => {
    const row = await findRecipientRow(tx, recipientId);
    if (!row) throw new DomainError('not_found');
    const { environment } = await getOrganization(tx, row.orgId);
    if (environment !== environmentName(runtime)) throw new DomainError('not_found');
    const { recipient, held } = openRecipient(sealer, row);
    const dataKey = openDataKey(sealer, row);
    const { items } = await exportSettlements({ db: tx, sealer }, row.orgId, {
      selection: { recipientId },
      page: { limit: EXPORTED_MAX, offset: 0 },
    });
    return {
      recipient,
      personalData: held?.personalData ?? null,
      verifications: await listWholeVerificationsOf(tx, row, dataKey, EXPORTED_MAX),
      settlements: items.map((item) => ({ ...item, frozenPayee: dataKey ? openPayee(dataKey, item) : null })),
      answers: dataKey ? await listAnswersAbout(tx, row, dataKey, EXPORTED_MAX) : [],
    };
  });

/** @throws DomainError `not_found` */
export async function exportRecipient(
  deps: Deps,
  recipientId: string,
  { operator, note }: Omit<OperatorAct, 'requestId'>,
): Promise<RecipientExport> {
  const exported = await readRecipientExport(deps, recipientId);
  await commit(deps, 'recipient.export', (tx) =>
    insertAuditEntry(tx, exported.recipient.orgId, {
      objectId: recipientId,
      action: 'recipient_export',
      operator,
      note,
      at: deps.now(),
    }),
  );
  return exported;
}
