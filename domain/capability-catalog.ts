/** The entries of the capability catalog (contract §14). A test checks that the tests named as evidence exist. */
import type { Capability, CapabilityCatalog } from './capability.ts';

const REVIEWED_AT = '2026-11-21T08:00:00.000Z';

type Entry = Pick<Capability, 'category' | 'description' | 'state' | 'nextGate'> &
  Partial<Pick<Capability, 'environment' | 'audience' | 'surface' | 'evidence'>>;

/** Where a capability is offered, or would belong, unless its entry says otherwise. */
const ENVIRONMENT_OF = {
  'local sandbox': 'local sandbox',
  gated: 'remote sandbox',
  unavailable: 'production',
} as const;

/** The surface of a capability that does not exist. */
export const NO_SURFACE = 'None';

/** Most capabilities are for partners. A capability that no test proves is only documented. */
const entry = (id: string, name: string, given: Entry): Capability => ({
  id,
  name,
  environment: ENVIRONMENT_OF[given.state],
  audience: 'authenticated partner',
  surface: NO_SURFACE,
  evidence: [],
  evidenceLevel: given.evidence === undefined ? 'documented' : 'locally tested',
  reviewedAt: REVIEWED_AT,
  ...given,
});

const SERVICES: readonly Capability[] = [
  entry('partner-api-catalog', 'Partner API catalog', {
    category: 'developer',
    description: 'The OpenAPI document of every operation. The supported partner contract is not frozen.',
    state: 'gated',
    environment: 'public',
    audience: 'public',
    surface: 'GET /openapi.json',
    evidence: ['test/contract/routes.test.ts › has only the operations of the interface and the service routes'],
    nextGate: 'operator_approval',
  }),
  entry('sdk-packages', 'SDK packages', {
    category: 'developer',
    description: 'Client packages for Node and Python. No signed package version is published.',
    state: 'gated',
    environment: 'public',
    audience: 'public',
    surface: 'Client sources; no published package',
    nextGate: 'operator_approval',
  }),
  entry('production-certification', 'Production certification', {
    category: 'developer',
    description:
      'Certification of a partner for production. Production moves no value, so there is nothing to certify.',
    state: 'unavailable',
    nextGate: 'compliance_program',
  }),
  entry('usage-reporting', 'Usage reporting', {
    category: 'reports',
    description:
      "A partner's use of the API by days, counted from the records. Excluded from the reviewed partner contract.",
    state: 'gated',
    surface: 'GET /v1/usage',
    evidence: [
      'test/api/usage.test.ts › 200 with every day of the period, and each record on the day on which it began',
    ],
    nextGate: 'operator_approval',
  }),
  entry('recipient-records', 'Recipient records', {
    category: 'recipients',
    description: "Reading, changing and deactivating the organization's own recipients, with account numbers sealed.",
    state: 'local sandbox',
    surface: 'GET /v1/recipients, GET|PUT|DELETE /v1/recipients/{recipient_id}',
    evidence: [
      "test/attack/tenancy.test.ts › 404 for another tenant's id, as for an unknown id, headers included, and nothing is written",
      'test/api/recipient.test.ts › 200 with pages, newest first, that have each own recipient once, from %s',
      'test/api/recipient.test.ts › personal data is sealed in the database, by a key of this recipient only',
    ],
    nextGate: 'compliance_program',
  }),
  entry('recipient-creation', 'Recipient creation', {
    category: 'recipients',
    description: 'Registering vendors and contractors. Excluded from the reviewed partner contract.',
    state: 'gated',
    surface: 'POST /v1/recipients',
    evidence: ['test/api/recipient.test.ts › 201 with every field, and of the account number its last four digits'],
    nextGate: 'compliance_program',
  }),
  entry('kyb-kyc-orchestration', 'KYB and KYC orchestration', {
    category: 'identity',
    description:
      'Verification of recipients: decided manually in the local sandbox, elsewhere only by signed provider events.',
    state: 'gated',
    surface: 'POST /v1/kyc/verify, POST /v1/kyc/idverify/applicant, POST /v2/webhooks/idverify',
    evidence: [
      'test/e2e/verification.test.ts › settles when the simulated provider answers GREEN, and is rejected on RED',
      'test/api/idverify-event.test.ts › 401 for every invalid one, before anything is parsed or written',
    ],
    nextGate: 'compliance_program',
  }),
  entry('compliance-evidence', 'Compliance evidence', {
    category: 'compliance',
    description:
      'Screening before anything is collected, recorded with the settlement. Simulated: no sanctions list is read.',
    state: 'local sandbox',
    surface: 'GET /v2/settle/{settlement_id}, GET /v1/kyc/status/{recipient_id}',
    evidence: [
      'test/activities/event-data.test.ts › for a settlement that is rejected by the screening',
      'test/e2e/verification.test.ts › settles when the simulated provider answers GREEN, and is rejected on RED',
    ],
    nextGate: 'compliance_program',
  }),
  entry('quote-estimates', 'Quote estimates', {
    category: 'quotes',
    description: 'Fees, a static rate and a delivery time, for display only. Nothing executes an estimate.',
    state: 'local sandbox',
    surface: 'POST /v2/estimate, POST /v1/fees/estimate, POST /v1/caribbean/estimate',
    evidence: ['test/api/estimate.test.ts › 200 with the price and the rate for thirty seconds, not executable'],
    nextGate: 'provider_evidence',
  }),
  entry('payment-method-discovery', 'Payment method discovery', {
    category: 'payins',
    description:
      'For each input method, how much of it is implemented and, separately, whether value may move through it.',
    state: 'local sandbox',
    surface: 'GET /v2/payment-methods',
    evidence: [
      'test/api/payment-method.test.ts › 200 with every method gated in a remote runtime',
      'test/api/payment-method.test.ts › 200 with the implemented methods admitted to the local sandbox',
    ],
    nextGate: 'provider_evidence',
  }),
  entry('ach-card-wire-collection', 'ACH, card and wire collection', {
    category: 'payins',
    description:
      'Collection by signed provider events. Simulated in the local sandbox; refused in every other environment.',
    state: 'gated',
    surface: 'POST /v2/settle, POST /v2/webhooks/cardproc, POST /v2/webhooks/bankledger',
    evidence: [
      'test/e2e/settlement.test.ts › events signed by the stripe package are accepted, and applied only once',
      'test/api/bankledger-event.test.ts › adds up in any order if it comes in parts',
      'test/api/bankledger-event.test.ts › returned before it funded: failed, with the code of the return',
      'test/api/remote.test.ts › 503 for value operations and disputes with evidence for every gate in every corridor',
    ],
    nextGate: 'provider_evidence',
  }),
  entry('settlement-simulation', 'Settlement simulation', {
    category: 'payouts',
    description: 'The durable workflow of a settlement from acceptance to certificate, with simulated money.',
    state: 'local sandbox',
    surface: 'POST /v2/settle, POST /v1/caribbean/settle',
    evidence: [
      'test/e2e/settlement.test.ts › tok_visa: accepted to settled, with a certificate and correct balances',
      'test/e2e/settlement.test.ts › 40 identical requests at once: 40 identical 202s, one settlement, one workflow',
    ],
    nextGate: 'rail_admission',
  }),
  entry('settlement-reads', 'Settlement reads', {
    category: 'payouts',
    description: "The organization's own settlements with their timeline, evidence and exceptions.",
    state: 'local sandbox',
    surface: 'GET /v2/settle/{settlement_id}, GET /v1/caribbean/settlements',
    evidence: [
      "test/api/settlement-list.test.ts › 200 without another organization's settlements, whatever is filtered",
      'test/api/settlement-read.test.ts › shows one moment when it is read by %s',
      'test/activities/event-data.test.ts › for each change of a settlement that is paid by card and disputed afterwards',
    ],
    nextGate: 'ledger_reconciliation',
  }),
  entry('caribbean-corridor-metadata', 'Caribbean corridor metadata', {
    category: 'payouts',
    description: 'The modeled countries, currencies, fees and rails. Synthetic; no corridor is live.',
    state: 'local sandbox',
    surface: 'GET /v1/caribbean/corridors',
    evidence: [
      'test/api/corridor.test.ts › 200 with no corridor live and no rail implemented',
      'test/api/corridor.test.ts › 200 with the fees, rails and limits of each corridor',
    ],
    nextGate: 'rail_admission',
  }),
  entry('jmd-local-payout', 'JMD local payout', {
    category: 'payouts',
    description: 'Payout in Jamaican dollars by a local rail. There is no adapter to a real rail.',
    state: 'unavailable',
    nextGate: 'rail_admission',
  }),
  entry('batch-payables', 'Batch payables', {
    category: 'batch',
    description: 'Paying many recipients with one command. The old batch routes are retired.',
    state: 'unavailable',
    nextGate: 'rail_admission',
  }),
  entry('onchain-settlement-execution', 'On-chain settlement execution', {
    category: 'onchain',
    description: 'Settlement by stablecoin. Wallets are simulated metadata; nothing is deployed or signed.',
    state: 'gated',
    surface: 'POST /v1/wallets',
    nextGate: 'provider_evidence',
  }),
  entry('evidence-certificates', 'Evidence certificates', {
    category: 'evidence',
    description: 'An immutable, signed certificate of each settled simulation, identified by its digest. Not anchored.',
    state: 'local sandbox',
    surface: 'GET /v1/caribbean/certificate/{cert_id}, GET /v1/caribbean/certificate/{cert_id}/verify',
    evidence: [
      'test/api/certificate.test.ts › 200 with the stored bytes, their digest and a signature that jose verifies',
      'test/api/certificate.test.ts › is detected when two certificates are swapped, whole or in part',
      'test/scripts/verify-certificate.test.ts › any of its bytes changed',
    ],
    nextGate: 'ledger_reconciliation',
  }),
  entry('public-certificate-verification', 'Public certificate verification', {
    category: 'evidence',
    description:
      'Verifying a certificate publicly, without a key. Today its owner verifies it, and others verify a copy offline.',
    state: 'gated',
    environment: 'public',
    audience: 'public',
    nextGate: 'operator_approval',
  }),
  entry('published-certificate-anchor', 'Published certificate anchor', {
    category: 'evidence',
    description:
      'Anchoring certificates where the service cannot change them. Every certificate says that it is unanchored.',
    state: 'unavailable',
    audience: 'public',
    nextGate: 'provider_evidence',
  }),
  entry('webhook-subscriptions', 'Webhook subscriptions', {
    category: 'events',
    description:
      'Signed events of settlements, certificates and verifications. Excluded from the reviewed partner contract.',
    state: 'gated',
    surface: 'POST /v1/webhooks',
    evidence: [
      'test/e2e/webhook.test.ts › each event of a settlement, with signatures that the public libraries verify',
      'test/api/webhook.test.ts › 201 with the secret; no read, list or table shows it again',
    ],
    nextGate: 'operator_approval',
  }),
  entry('webhook-delivery-history', 'Webhook delivery history', {
    category: 'events',
    description: 'Deliveries with their outcome and their last ten attempts, without URLs, bodies or secrets.',
    state: 'local sandbox',
    surface: 'GET /v1/webhooks/{webhook_id}/deliveries',
    evidence: [
      'test/api/webhook.test.ts › 200 in pages, filtered by status, newest first',
      'test/api/webhook.test.ts › 200 with the last ten attempts of a delivery, and the number of all of them',
      'test/e2e/webhook.test.ts › makes the second retry in one round; neither its history nor the delivery shows the answer or the query',
    ],
    nextGate: 'operator_approval',
  }),
  entry('partner-balances', 'Partner balances', {
    category: 'balances',
    description: 'Balances that a partner holds with the service. None are held.',
    state: 'unavailable',
    nextGate: 'ledger_reconciliation',
  }),
  entry('three-way-reconciliation', 'Three-way reconciliation', {
    category: 'reconciliation',
    description: 'Reconciling the journal with provider and bank statements. The journal has only simulated money.',
    state: 'unavailable',
    nextGate: 'ledger_reconciliation',
  }),
  entry('returns-refunds-disputes', 'Returns, refunds and disputes', {
    category: 'exceptions',
    description: 'Accounting for money that is paid back. The sandbox records what is due back, but pays nothing back.',
    state: 'unavailable',
    nextGate: 'dispute_accounting',
  }),
];

export const CAPABILITY_CATALOG: CapabilityCatalog = {
  schemaVersion: '1',
  updatedAt: REVIEWED_AT,
  services: SERVICES,
};
