/**
 * An example of the data of each type of event, for tests of subscriptions (contract §11). The functions that make the
 * real ones make it, so that it has their form and does not contradict itself. It is about objects that do not exist.
 */
import type { ApiKey } from '../api-key.ts';
import { certificateContent, certificateId } from '../certificate.ts';
import type { EventType } from '../event.ts';
import { price } from '../pricing.ts';
import type { Recipient } from '../recipient.ts';
import type { EnvironmentName } from '../runtime.ts';
import {
  acceptedEvent,
  changeOf,
  type Move,
  type SettlementChange,
  withCertificate,
  withEvidence,
  withMove,
  withRefund,
} from '../settlement/change.ts';
import type { EvidenceKind } from '../settlement/evidence.ts';
import { FAILURES } from '../settlement/failure.ts';
import { acceptedSettlement, type Settlement } from '../settlement/state.ts';
import { openedVerification, VERIFICATION_WINDOW_MS, type Verification } from '../verification.ts';
import { apiKeyResource } from './api-key.ts';
import { certificateEventData } from './certificate.ts';
import { recipientEventData } from './recipient.ts';
import { settlementEventData } from './settlement.ts';
import { verificationResource } from './verification.ts';

/** Whose objects the examples would be, and when. */
type Owner = { readonly orgId: string; readonly environment: EnvironmentName; readonly now: Date };

/** `webhook.ping` needs no example: it shows the subscription. */
export type ExampleType = Exclude<EventType, 'webhook.ping'>;
type Data = Readonly<Record<string, unknown>>;

const ID = '00000000-0000-7000-8000-000000000001';
const OTHER_ID = '00000000-0000-7000-8000-000000000002';
const SETTLEMENT_ID = `stl_${'a'.repeat(32)}`;
const SHA256 = '00'.repeat(32);

/** @returns the data of an event of this type */
export function eventExample(type: ExampleType, owner: Owner): Data {
  const settlement = settlementExample(type, owner);
  if (settlement) return settlement;
  switch (type) {
    case 'certificate.issued':
      return certificateEventData(certificateOf(settledChange(owner)), owner.now);
    case 'verification.pending':
      return verification(owner, {});
    case 'verification.verified':
      return verification(owner, { status: 'verified', decidedAt: owner.now });
    case 'verification.rejected':
      return verification(owner, {
        status: 'rejected',
        decidedAt: owner.now,
        rejectionReason: 'The document has expired.',
      });
    case 'verification.expired':
      return verification(
        { ...owner, now: new Date(owner.now.getTime() - VERIFICATION_WINDOW_MS) },
        { status: 'expired' },
      );
    case 'recipient.deactivated':
      return recipientEventData({ ...recipientOf(owner), isActive: false });
    case 'api_key.created':
      return apiKey(owner, {});
    case 'api_key.rotated':
      return apiKey(owner, { status: 'rotated', rotatedTo: OTHER_ID });
    case 'api_key.revoked':
      return apiKey(owner, { status: 'revoked', revokedAt: owner.now });
    default:
      throw new Error(`there is no example of ${type}`);
  }
}

type Step = (change: SettlementChange) => SettlementChange;

const move =
  (to: Move['to'], failure?: Move['failure']): Step =>
  (change) =>
    withMove(change, { to, reason: failure?.code ?? 'example', failure });

const evidence =
  (kind: EvidenceKind): Step =>
  (change) =>
    withEvidence(change, {
      evidenceId: ID,
      provider: 'cardproc',
      eventId: kind,
      kind,
      amountMinor: change.after.amountMinor,
      currency: change.after.sourceCurrency,
      failure: null,
      sha256: SHA256,
    });

const PAYING_OUT = [move('awaiting_funds'), evidence('collection_succeeded'), move('funded'), move('paying_out')];
const SETTLED = [...PAYING_OUT, move('settled')];

/** Together they have every event of a settlement. */
const STORIES: readonly (readonly Step[])[] = [
  [...SETTLED, (change) => withCertificate(change, certificateOf(change)), evidence('dispute_opened')],
  [move('compliance_hold'), move('canceled')],
  [move('rejected', FAILURES.screeningHit)],
  [move('awaiting_funds'), move('expired', FAILURES.fundingTimeout)],
  [
    ...PAYING_OUT,
    move('needs_review'),
    move('failed', FAILURES.payoutRefused),
    (change) => withRefund(change, 'example', change.after.amountMinor),
  ],
];

function settlementExample(type: ExampleType, owner: Owner): Data | undefined {
  const accepted = acceptedOf(owner);
  const told = STORIES.flatMap((steps) => tell(accepted, steps).events);
  const event = [acceptedEvent(accepted), ...told].find((candidate) => candidate.type === type);
  return event && settlementEventData(event);
}

const tell = (settlement: Settlement, steps: readonly Step[]): SettlementChange =>
  steps.reduce((change, step) => step(change), changeOf({ settlement, exceptions: [] }, settlement.createdAt));

const settledChange = (owner: Owner): SettlementChange => tell(acceptedOf(owner), SETTLED);

function acceptedOf({ orgId, environment, now }: Owner): Settlement {
  const priced = price({ corridor: 'US-JM', amount: '1250.00', paymentMethod: 'card' });
  if ('faults' in priced) throw new Error('the example has no price');
  return acceptedSettlement({
    ...priced.pricing,
    settlementId: SETTLEMENT_ID,
    orgId,
    origin: 'v2',
    recipientId: ID,
    payeeSealed: '',
    payeeSha256: SHA256,
    purpose: null,
    reference: 'Example',
    metadata: {},
    environment,
    requestId: '',
    createdAt: now,
  });
}

function certificateOf({ after: settlement, transitions, evidence: received, postings }: SettlementChange) {
  const facts = { settlement, transitions, evidence: received ? [received] : [], postings };
  return {
    certId: certificateId(SHA256),
    content: JSON.stringify(certificateContent(facts)),
    sha256: SHA256,
    signature: '',
  };
}

const recipientOf = ({ orgId, now }: Owner): Recipient => ({
  recipientId: ID,
  orgId,
  kind: 'contractor',
  entityType: 'individual',
  name: '',
  country: 'JM',
  email: null,
  phone: null,
  bankDetails: null,
  mobileDetails: null,
  metadata: {},
  isActive: true,
  verificationStatus: 'verified',
  dataKeySealed: null,
  erasedAt: null,
  createdAt: now,
  updatedAt: now,
});

function verification(owner: Owner, changed: Partial<Verification>): Data {
  const opened = openedVerification(recipientOf(owner), {
    verificationId: ID,
    verificationType: 'kyc',
    documentType: 'passport',
    documentCountry: 'JM',
    provider: 'manual_mock',
    levelName: null,
    givenContact: null,
    requestId: '',
    createdAt: owner.now,
  });
  return verificationResource({ ...opened, ...changed });
}

const apiKey = ({ orgId, environment, now }: Owner, changed: Partial<ApiKey>): Data =>
  apiKeyResource(
    {
      keyId: ID,
      orgId,
      name: 'Example',
      scope: 'read',
      status: 'active',
      environment,
      prefix: 'sk_example__',
      createdAt: now,
      lastUsedAt: null,
      lastUsedFrom: null,
      allowedCidrs: null,
      expiresAt: null,
      revokedAt: null,
      rotatedTo: null,
      createdBy: null,
      ...changed,
    },
    now,
  );
