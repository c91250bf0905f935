/**
 * A recipient as the API and the events show it (contract §4). It has only the last four characters of an account
 * number, because `Recipient` has no more.
 */
import type { BankDetails, Recipient } from '../recipient.ts';

/** The fields of RecipientResponse. */
export function recipientResource(recipient: Recipient) {
  return {
    recipient_id: recipient.recipientId,
    org_id: recipient.orgId,
    kind: recipient.kind,
    entity_type: recipient.entityType,
    name: recipient.name,
    country: recipient.country,
    email: recipient.email,
    phone: recipient.phone,
    bank_details: recipient.bankDetails && bankDetailsResource(recipient.bankDetails),
    mobile_details: recipient.mobileDetails,
    metadata: recipient.metadata,
    is_active: recipient.isActive,
    verification_status: recipient.verificationStatus,
    erased_at: recipient.erasedAt?.toISOString() ?? null,
    created_at: recipient.createdAt.toISOString(),
    updated_at: recipient.updatedAt.toISOString(),
  };
}

/** The data of an event: all fields but the personal data. */
export function recipientEventData(recipient: Recipient) {
  const {
    name: _name,
    email: _email,
    phone: _phone,
    bank_details: _bankDetails,
    mobile_details: _mobileDetails,
    ...shown
  } = recipientResource(recipient);
  return shown;
}

function bankDetailsResource(details: BankDetails) {
  return {
    bank_name: details.bank_name,
    account_number_last4: details.account_number_last4,
    account_type: details.account_type ?? null,
    branch_code: details.branch_code ?? null,
    routing_number: details.routing_number ?? null,
    swift_bic: details.swift_bic ?? null,
    currency: details.currency,
  };
}
