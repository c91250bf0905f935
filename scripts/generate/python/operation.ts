/** Where each operation of the document stands in the Python client. */

type Place = readonly [group: string, method: string];

const PARTNER: Readonly<Record<string, Place>> = {
  createSettlement: ['Settlements', 'create'],
  getSettlement: ['Settlements', 'get'],
  cancelSettlement: ['Settlements', 'cancel'],
  listSettlements: ['Settlements', 'list'],
  createCaribbeanSettlement: ['Caribbean', 'settle'],
  listCaribbeanSettlements: ['Caribbean', 'list_settlements'],
  getCaribbeanSettlement: ['Caribbean', 'get_settlement'],
  estimateOfframp: ['Caribbean', 'estimate'],
  listCorridors: ['Caribbean', 'corridors'],
  estimateSettlement: ['Estimates', 'create'],
  estimateFees: ['Estimates', 'fees'],
  createRecipient: ['Recipients', 'create'],
  listRecipients: ['Recipients', 'list'],
  getRecipient: ['Recipients', 'get'],
  updateRecipient: ['Recipients', 'update'],
  deactivateRecipient: ['Recipients', 'deactivate'],
  startVerification: ['Verifications', 'start'],
  getVerification: ['Verifications', 'get'],
  completeVerification: ['Verifications', 'complete'],
  getVerificationStatus: ['Verifications', 'status'],
  createIdverifyApplicant: ['Verifications', 'create_applicant'],
  getCertificate: ['Certificates', 'get'],
  verifyCertificate: ['Certificates', 'verify'],
  getCertificateKeys: ['Certificates', 'keys'],
  createOrganization: ['Organizations', 'create'],
  getOrganization: ['Organizations', 'get'],
  getCaller: ['Organizations', 'me'],
  getUsage: ['Organizations', 'usage'],
  createApiKey: ['ApiKeys', 'create'],
  listApiKeys: ['ApiKeys', 'list'],
  rotateApiKey: ['ApiKeys', 'rotate'],
  revokeApiKey: ['ApiKeys', 'revoke'],
  createWallet: ['Wallets', 'create'],
  listWallets: ['Wallets', 'list'],
  getWallet: ['Wallets', 'get'],
  createWebhook: ['Webhooks', 'create'],
  listWebhooks: ['Webhooks', 'list'],
  getWebhook: ['Webhooks', 'get'],
  updateWebhook: ['Webhooks', 'update'],
  deleteWebhook: ['Webhooks', 'delete'],
  rotateWebhookSecret: ['Webhooks', 'rotate_secret'],
  sendTestEvent: ['Webhooks', 'send_test_event'],
  listWebhookDeliveries: ['Webhooks', 'deliveries'],
  redeliverWebhook: ['Webhooks', 'redeliver'],
  replayWebhook: ['Webhooks', 'replay'],
  getWebhookReplay: ['Webhooks', 'get_replay'],
  listEvents: ['Events', 'list'],
  getEvent: ['Events', 'get'],
  createLinkToken: ['Banklink', 'create_link_token'],
  exchangePublicToken: ['Banklink', 'exchange'],
  getCapabilities: ['Service', 'capabilities'],
  getLaunchGates: ['Service', 'launch_gates'],
  listPaymentMethods: ['Service', 'payment_methods'],
  sendSandboxEvent: ['Sandbox', 'send_event'],
  advanceSettlement: ['Sandbox', 'advance'],
  listScenarios: ['Sandbox', 'scenarios'],
};

const CONSUMER: Readonly<Record<string, Place>> = {
  requestOtp: ['ConsumerAccount', 'request_otp'],
  verifyOtp: ['ConsumerAccount', 'verify_otp'],
  logout: ['ConsumerAccount', 'logout'],
  getConsumer: ['ConsumerAccount', 'me'],
  listConsumerRecipients: ['ConsumerRecipients', 'list'],
  createConsumerRecipient: ['ConsumerRecipients', 'create'],
  verifyConsumerRecipient: ['ConsumerRecipients', 'verify'],
  createQuote: ['Quotes', 'create'],
  createTransfer: ['Transfers', 'create'],
  listTransfers: ['Transfers', 'list'],
  getTransfer: ['Transfers', 'get'],
  cancelTransfer: ['Transfers', 'cancel'],
  createConsumerLinkToken: ['ConsumerBanklink', 'create_link_token'],
  exchangeConsumerPublicToken: ['ConsumerBanklink', 'exchange'],
};

/**
 * What a partner does not call, as providers send their events and operators watch the service, and a download that is
 * written by hand.
 */
const LEFT_OUT = new Set([
  'receiveCardprocEvent',
  'receiveBankledgerEvent',
  'receiveIdverifyEvent',
  'getLiveness',
  'getReadiness',
  'getOpenApiDocument',
  'getTransferCertificate',
]);

/** Their second execution changes nothing (contract §3 to §6, §8), although they are neither a GET nor have a key. */
export const REPEATABLE = new Set([
  'cancelSettlement',
  'cancelTransfer',
  'deactivateRecipient',
  'revokeApiKey',
  'completeVerification',
  'estimateSettlement',
  'estimateOfframp',
  'estimateFees',
]);

/**
 * The class and the method of an operation; undefined for one that the client does not have.
 *
 * @throws Error for an operation that this table does not know
 */
export function placeOf(operationId: string): Place | undefined {
  const place = PARTNER[operationId] ?? CONSUMER[operationId];
  if (place === undefined && !LEFT_OUT.has(operationId))
    throw new Error(
      `${operationId} has no place in the Python client: add it to scripts/generate/python/operation.ts.`,
    );
  return place;
}
