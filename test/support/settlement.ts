/**
 * Settlements that have already lived their life, written row by row: state, history, evidence and journal as a
 * real run leaves them, without the code that makes one.
 */
import { createHash } from 'node:crypto';
import { and, eq } from 'drizzle-orm';
import { type Certifier, issueCertificate } from '../../activities/certificate.ts';
import type { Database, Tx } from '../../db/client.ts';
import { newId, settlementIdOf } from '../../db/id.ts';
import { evidence, postings, recipients, settlements, settlementTransitions } from '../../db/schema/index.ts';
import type { CorridorId } from '../../domain/corridor.ts';
import type { EvidenceKind, EvidenceProvider } from '../../domain/evidence.ts';
import type { PaymentMethod } from '../../domain/payment-method.ts';
import { collectionPostings, type Posting, transitionPostings } from '../../domain/posting.ts';
import { price } from '../../domain/pricing.ts';
import type { Settlement, SettlementStatus } from '../../domain/settlement.ts';

export type SettledOptions = {
  readonly corridor?: CorridorId;
  readonly amount?: string;
  readonly paymentMethod?: PaymentMethod;
  readonly recipient?: Partial<typeof recipients.$inferInsert>;
  readonly reference?: string;
  readonly metadata?: Record<string, string>;
  /** What is written as the reason of every transition. */
  readonly reason?: string;
  readonly createdAt?: Date;
};

const STEP_MS = 1_000;
const PROVIDER_OF: Record<PaymentMethod, EvidenceProvider> = {
  card: 'cardproc',
  ach: 'bankledger',
  wire: 'bankledger',
  internal: 'internal',
};

/** An active, unverified recipient in Jamaica with bank details. */
async function insertRecipient(
  db: Database | Tx,
  orgId: string,
  values: SettledOptions['recipient'] = {},
): Promise<string> {
  const recipientId = newId();
  const at = new Date();
  await db.insert(recipients).values({
    recipientId,
    orgId,
    kind: 'vendor',
    entityType: 'individual',
    name: 'Test Recipient',
    country: 'JM',
    bankDetails: { bank_name: 'Test Bank', account_number_last4: '6789', currency: 'JMD' },
    metadata: {},
    isActive: true,
    verificationStatus: 'unverified',
    createdAt: at,
    updatedAt: at,
    ...values,
  });
  return recipientId;
}

/** A settlement that reached `settled`, paid by one collection; it has no certificate yet. */
export async function insertSettledSettlement(
  db: Database,
  orgId: string,
  options: SettledOptions = {},
): Promise<Settlement> {
  return await db.transaction(async (tx) => {
    const accepted = await insertAccepted(tx, orgId, options);
    const life = livesOn(tx, accepted, options.reason ?? 'test');
    await life.enter('accepted');
    await life.enter('awaiting_funds');
    const collected = await life.receive(PROVIDER_OF[accepted.paymentMethod], 'collection_succeeded');
    await life.book(`collection:${collected}`, collectionPostings(accepted, accepted.amountMinor));
    await life.enter('funded', collected);
    await life.enter('paying_out');
    return await life.enter('settled', await life.receive('payout_rail', 'payout_confirmed'));
  });
}

/** As `insertSettledSettlement`, with its certificate and the event that tells of it. */
export async function insertCertifiedSettlement(
  db: Database,
  certifier: Certifier,
  orgId: string,
  options: SettledOptions = {},
): Promise<{ settlement: Settlement; certId: string }> {
  const settled = await insertSettledSettlement(db, orgId, options);
  return await db.transaction(async (tx) => {
    const certId = await issueCertificate(tx, certifier, settled, {
      at: settled.updatedAt,
      requestId: settled.requestId,
    });
    await tx.update(settlements).set({ certificateId: certId }).where(owned(settled));
    return { settlement: { ...settled, certificateId: certId }, certId };
  });
}

const owned = ({ orgId, settlementId }: Settlement) =>
  and(eq(settlements.orgId, orgId), eq(settlements.settlementId, settlementId));

async function insertAccepted(tx: Tx, orgId: string, options: SettledOptions): Promise<Settlement> {
  const priced = price({
    corridor: options.corridor ?? 'US-JM',
    amount: options.amount ?? '250.00',
    paymentMethod: options.paymentMethod ?? 'card',
  });
  if ('faults' in priced) throw new Error(`a test settlement that breaks the rules: ${JSON.stringify(priced.faults)}`);
  const createdAt = options.createdAt ?? new Date('2026-11-21T08:00:00.000Z');
  const settlement: Settlement = {
    ...priced.pricing,
    settlementId: settlementIdOf(orgId, newId()),
    orgId,
    origin: 'v2',
    status: 'accepted',
    version: 0,
    recipientId: await insertRecipient(tx, orgId, options.recipient),
    amountReceivedMinor: priced.pricing.amountMinor,
    purpose: null,
    reference: options.reference ?? null,
    metadata: options.metadata ?? {},
    environment: 'local sandbox',
    failure: null,
    expiresAt: null,
    clockOffsetMs: 0,
    certificateId: null,
    requestId: 'test-request',
    createdAt,
    updatedAt: createdAt,
  };
  await tx.insert(settlements).values(settlement);
  return settlement;
}

/** Moves a settlement step by step, a second apart. */
function livesOn(tx: Tx, accepted: Settlement, reason: string) {
  const { settlementId } = accepted;
  let settlement = accepted;
  const book = async (step: string, set: readonly Posting[]): Promise<void> => {
    if (set.length > 0)
      await tx
        .insert(postings)
        .values(set.map((posting, line) => ({ settlementId, step, line, ...posting, at: settlement.updatedAt })));
  };
  return {
    book,
    receive: async (provider: EvidenceProvider, kind: EvidenceKind): Promise<string> => {
      const evidenceId = newId();
      const money =
        kind === 'collection_succeeded'
          ? { amountMinor: settlement.amountMinor, currency: settlement.sourceCurrency }
          : {};
      const sha256 = createHash('sha256').update(evidenceId).digest();
      const receivedAt = settlement.updatedAt;
      await tx.insert(evidence).values({
        evidenceId,
        settlementId,
        provider,
        eventId: evidenceId,
        kind,
        ...money,
        sha256,
        pending: false,
        receivedAt,
      });
      return evidenceId;
    },
    enter: async (to: SettlementStatus, evidenceId: string | null = null): Promise<Settlement> => {
      const from = settlement.version === 0 ? null : settlement.status;
      const version = settlement.version + 1;
      const at = new Date(settlement.createdAt.getTime() + settlement.version * STEP_MS);
      const before = settlement;
      settlement = { ...settlement, status: to, version, updatedAt: at };
      await tx.update(settlements).set({ status: to, version, updatedAt: at }).where(owned(settlement));
      await tx
        .insert(settlementTransitions)
        .values({ settlementId, sequence: version, from, to, at, reason, evidenceId });
      if (from !== null) await book(to, transitionPostings(before, from, to));
      return settlement;
    },
  };
}
