/** `show` of a certificate, of a provider event, and of what a request began. */
import { readLongSnapshot } from '../db/client.ts';
import { findCertificateObject } from '../db/queries/operator/certificate.ts';
import { listDeliveriesAbout } from '../db/queries/operator/delivery.ts';
import { listEvidenceOfEvent, listProviderEvents } from '../db/queries/operator/evidence.ts';
import { listEvents } from '../db/queries/operator/object.ts';
import { listOfRequest } from '../db/queries/operator/request.ts';
import { signingKeyOf } from '../db/queries/service-key.ts';
import { advice } from '../domain/operator-advice.ts';
import type { OpsDeps } from './command.ts';
import { money, type Report, type Row } from './report.ts';
import { deliveryRow, eventRow, outboxRow, settlementRow } from './report-row.ts';

const show = (id: string): string => `npm run ops -- show ${id}`;

export async function reportCertificate({ db }: OpsDeps, certId: string): Promise<Report | undefined> {
  const certificate = await findCertificateObject(db, certId);
  if (!certificate) return undefined;
  const { settlementId, orgId, sha256, signature, issuedAt } = certificate;
  return {
    kind: 'certificate',
    id: certId,
    facts: {
      settlement: settlementId,
      organization: orgId,
      issued_at: issuedAt,
      sha256: sha256.toString('hex'),
      signing_key: signingKeyOf(signature),
    },
    lists: {
      events: (await listEvents(db, certId)).map(eventRow),
      deliveries: (await listDeliveriesAbout(db, certId)).map(deliveryRow),
    },
    next: [advice('None: it never changes. For the money behind it:', show(settlementId))],
  };
}

export async function reportProviderEvent({ db }: OpsDeps, eventId: string): Promise<Report | undefined> {
  const events = await listProviderEvents(db, eventId);
  const [first] = events;
  if (!first) return undefined;
  const evidence = await listEvidenceOfEvent(db, eventId);
  const [applied] = evidence;
  return {
    kind: 'provider_event',
    id: eventId,
    facts: {},
    lists: {
      received: events.map(({ provider, type, matched, receivedAt, bodySha256 }) => ({
        provider,
        type,
        at: receivedAt,
        // The row says what was true when the event first came. What was applied since shows by its evidence alone.
        applied:
          matched ||
          evidence.some((applied) => applied.provider === provider) ||
          (provider === 'idverify' ? null : false),
        sha256: bodySha256.toString('hex'),
      })),
      evidence: evidence.map(
        ({ kind, settlementId, amountMinor, currency, pending, evidenceId }): Row => ({
          kind,
          settlement: settlementId,
          amount: money(amountMinor, currency),
          decided: !pending,
          evidence: evidenceId,
        }),
      ),
    },
    next: [
      applied
        ? advice('What it did to the settlement:', show(applied.settlementId))
        : advice(
            first.matched
              ? 'None: it was applied, and it is no evidence of money.'
              : first.provider === 'idverify'
                ? 'It was not applied when it first came: it names no verification, one that was unknown, or another ' +
                  'applicant. Show the verification: if it still waits, ask the provider to send the event again.'
                : 'It was stored and not applied: it names no object, one that was unknown when it came, or one that this ' +
                  'provider does not pay for. Ask the provider which object it means. If that exists now, have it send ' +
                  'the event again: it is applied then, once.',
          ),
    ],
  };
}

export async function reportRequest({ db }: OpsDeps, requestId: string): Promise<Report | undefined> {
  const { settlements, verifications, deliveries, outbox } = await readLongSnapshot(db, (tx) =>
    listOfRequest(tx, requestId),
  );
  const [first] = [
    ...settlements.map(({ settlementId }) => settlementId),
    ...verifications.map(({ verificationId }) => verificationId),
    ...deliveries.map(({ deliveryId }) => deliveryId),
    ...outbox.map(({ objectId }) => objectId),
  ];
  if (first === undefined) return undefined;
  return {
    kind: 'request',
    id: requestId,
    facts: {},
    lists: {
      settlements: settlements.map(settlementRow),
      verifications: verifications.map(({ verificationId, status, createdAt }) => ({
        verification: verificationId,
        status,
        created_at: createdAt,
      })),
      deliveries: deliveries.map(deliveryRow),
      outbox: outbox.map((row) => ({ object: row.objectId, ...outboxRow(row) })),
    },
    next: [advice('What the request began:', show(first))],
  };
}
