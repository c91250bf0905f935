/** `show` of a recipient and of a verification. */
import { listDeliveriesAbout } from '../db/queries/operator/delivery.ts';
import { listAuditEntries, listEvents, listOutboxRows } from '../db/queries/operator/object.ts';
import { findRecipientObject } from '../db/queries/operator/recipient.ts';
import { listSettlementsTo } from '../db/queries/operator/settlement.ts';
import { findVerificationObject, listVerificationsOf } from '../db/queries/operator/verification.ts';
import { createSealer } from '../db/seal.ts';
import { maskEmail, maskName, maskPhone } from '../domain/mask.ts';
import { type Advice, advice, verificationAdvice } from '../domain/operator-advice.ts';
import type { Recipient } from '../domain/recipient.ts';
import { isOpen, type Verification } from '../domain/verification.ts';
import { verificationWorkflowId } from '../domain/workflow-id.ts';
import type { OpsDeps } from './command.ts';
import type { Report } from './report.ts';
import { auditRow, deliveryRow, eventRow, outboxRow, settlementRow } from './report-row.ts';
import { obstacleAdvice, reportRun } from './run-report.ts';

export async function reportRecipient({ db, keys }: OpsDeps, recipientId: string): Promise<Report | undefined> {
  const sealer = createSealer(keys.encryptionKeys);
  const recipient = await findRecipientObject({ db, sealer }, recipientId);
  if (!recipient) return undefined;
  const { email, phone, bankDetails, mobileDetails } = recipient;
  const verifications = await listVerificationsOf(db, recipientId);
  const open = verifications.find(({ status }) => isOpen(status));
  return {
    kind: 'recipient',
    id: recipientId,
    facts: {
      active: recipient.isActive,
      verification_status: recipient.verificationStatus,
      organization: recipient.orgId,
      name: recipient.name && maskName(recipient.name),
      recipient_kind: recipient.kind,
      entity_type: recipient.entityType,
      country: recipient.country,
      email: email && maskEmail(email),
      phone: phone && maskPhone(phone),
      bank: bankDetails && `${bankDetails.bank_name}, account ***${bankDetails.account_number_last4}`,
      mobile_money: mobileDetails && `${mobileDetails.provider}, ${maskPhone(mobileDetails.phone_number)}`,
      erased_at: recipient.erasedAt,
      created_at: recipient.createdAt,
      changed_at: recipient.updatedAt,
    },
    lists: {
      verifications: verifications.map(
        ({ verificationId, status, verificationType, provider, decidedAt, expiresAt }) => ({
          verification: verificationId,
          status,
          type: verificationType,
          provider,
          decided_at: decidedAt,
          until: isOpen(status) ? expiresAt : null,
        }),
      ),
      latest_settlements: (await listSettlementsTo(db, recipient.orgId, recipientId)).map(settlementRow),
      events: (await listEvents(db, recipientId)).map(eventRow),
      audit: (await listAuditEntries(db, recipientId)).map(auditRow),
    },
    next: [recipientAdvice(recipient, open?.verificationId)],
  };
}

function recipientAdvice({ isActive, erasedAt, verificationStatus }: Recipient, openId: string | undefined): Advice {
  if (erasedAt) return advice('None: its personal data was erased. Amounts, dates and certificates stay.');
  if (!isActive) return advice('None: the partner deactivated it. It takes no new settlement.');
  if (openId !== undefined) return advice('A verification is open:', `npm run ops -- show ${openId}`);
  return verificationStatus === 'verified'
    ? advice('None: it takes settlements of any amount.')
    : advice('From 1 000.00 a settlement waits until the partner has it verified.');
}

export async function reportVerification(deps: OpsDeps, verificationId: string): Promise<Report | undefined> {
  const { db } = deps;
  const sealer = createSealer(deps.keys.encryptionKeys);
  const verification = await findVerificationObject({ db, sealer }, verificationId);
  if (!verification) return undefined;
  const { status, provider, expiresAt, createdAt } = verification;
  const outbox = await listOutboxRows(db, verificationId);
  const run = await reportRun(deps, verificationWorkflowId(verificationId));
  const events = await listEvents(db, verificationId);
  return {
    kind: 'verification',
    id: verificationId,
    facts: {
      status,
      since: sinceOf(verification, events.at(-1)?.createdAt),
      until: isOpen(status) ? expiresAt : null,
      organization: verification.orgId,
      recipient: verification.recipientId,
      type: verification.verificationType,
      provider,
      applicant: verification.applicantId,
      subject: verification.subjectName && maskName(verification.subjectName),
      // Free text of the partner or the provider, which may name the person.
      rejection_reason: verification.rejectionReason === null ? null : 'given',
      created_at: createdAt,
      request_id: verification.requestId,
      ...run.facts,
    },
    lists: {
      history: events.map(eventRow),
      pending_steps: run.activities,
      outbox: outbox.map(outboxRow),
      deliveries: (await listDeliveriesAbout(db, verificationId)).map(deliveryRow),
      audit: (await listAuditEntries(db, verificationId)).map(auditRow),
    },
    next: [
      obstacleAdvice(run, outbox, { id: verificationId, needsRun: isOpen(status) }) ??
        verificationAdvice(status, provider === 'manual_mock', expiresAt.toISOString()),
    ],
  };
}

/** Null in review, which has no event. Events may be deleted before the verification is looked at. */
function sinceOf({ status, createdAt, decidedAt, expiresAt }: Verification, lastEventAt: Date | undefined) {
  if (status === 'expired') return lastEventAt ?? expiresAt;
  return status === 'in_review' ? null : (decidedAt ?? createdAt);
}
