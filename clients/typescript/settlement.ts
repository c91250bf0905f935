/** Settlements, and what they need: recipients, verifications, bank links, estimates (contract §4 to §8, §10). */
import type { AnswerOf, BodyOf, QueryOf } from './operation.ts';
import { creationAt, listAt, type Request } from './request.ts';
import type { CallOptions, Send } from './transport.ts';
import { ANSWER_MS, type Hold, type ReadOptions, type WaitOptions, waitFor } from './wait.ts';

export type Settlement = AnswerOf<'GET', '/v2/settle/{settlement_id}'>;

/** The options of a read that the API may hold back. */
export const heldRead = (hold: Hold | undefined, options: ReadOptions) =>
  hold === undefined
    ? options
    : {
        ...options,
        headers: { Prefer: `wait=${hold.seconds}`, ...(hold.seen !== null && { 'If-None-Match': hold.seen }) },
        attemptTimeoutMs: hold.seconds * 1_000 + ANSWER_MS,
      };

/** Canceling what is canceled answers the same, so it may be repeated (contract §6). */
export const REPEATABLE = { isRepeatable: true } as const;

export const settlementGroups = (send: Send, request: Request) => ({
  settlements: {
    ...creationAt(send, '/v2/settle'),
    get: async (settlementId: string, options: CallOptions = {}) =>
      (await request('GET', '/v2/settle/{settlement_id}', { path: { settlement_id: settlementId }, ...options })).data,
    /** Newest first. Each filter of the document, also several together. */
    list: (filter?: QueryOf<'/v2/settlements'>, options?: CallOptions) =>
      listAt(send, '/v2/settlements', filter, options),
    /**
     * Waits until the settlement has ended, or until it is as you wish, for at most `timeoutMs` (60 s).
     *
     * @throws WaitTimeout with the settlement as it was read last; without any answer, the error of the read
     */
    wait: async (settlementId: string, options?: WaitOptions<Settlement>): Promise<Settlement> =>
      waitFor(
        (hold, read) =>
          request('GET', '/v2/settle/{settlement_id}', {
            path: { settlement_id: settlementId },
            ...heldRead(hold, read),
          }),
        options,
      ),
    /** @throws ApiError `state_conflict` when the money is already there */
    cancel: async (settlementId: string, options: CallOptions = {}) => {
      const path = { settlement_id: settlementId };
      return (await request('POST', '/v2/settle/{settlement_id}/cancel', { path, ...REPEATABLE, ...options })).data;
    },
  },
  recipients: {
    ...creationAt(send, '/v1/recipients'),
    get: async (recipientId: string, options: CallOptions = {}) =>
      (await request('GET', '/v1/recipients/{recipient_id}', { path: { recipient_id: recipientId }, ...options })).data,
    list: (filter?: QueryOf<'/v1/recipients'>, options?: CallOptions) =>
      listAt(send, '/v1/recipients', filter, options),
    /** Only the fields that you give change; `null` clears one. */
    update: async (
      recipientId: string,
      fields: BodyOf<'PUT', '/v1/recipients/{recipient_id}'>,
      options: CallOptions = {},
    ) => {
      const path = { recipient_id: recipientId };
      return (await request('PUT', '/v1/recipients/{recipient_id}', { path, body: fields, ...options })).data;
    },
    deactivate: async (recipientId: string, options: CallOptions = {}) => {
      const path = { recipient_id: recipientId };
      return (await request('DELETE', '/v1/recipients/{recipient_id}', { path, ...REPEATABLE, ...options })).data;
    },
  },
  verifications: {
    start: creationAt(send, '/v1/kyc/verify').create,
    get: async (verificationId: string, options: CallOptions = {}) => {
      const path = { verification_id: verificationId };
      return (await request('GET', '/v1/kyc/{verification_id}', { path, ...options })).data;
    },
    /** The decision of the sandbox's reviewer. The same decision again answers the same. */
    complete: async (
      verificationId: string,
      decision: BodyOf<'POST', '/v1/kyc/{verification_id}/complete'>,
      options: CallOptions = {},
    ) => {
      const path = { verification_id: verificationId };
      const input = { path, body: decision, ...REPEATABLE, ...options };
      return (await request('POST', '/v1/kyc/{verification_id}/complete', input)).data;
    },
    status: async (recipientId: string, options: CallOptions = {}) =>
      (await request('GET', '/v1/kyc/status/{recipient_id}', { path: { recipient_id: recipientId }, ...options })).data,
    createApplicant: creationAt(send, '/v1/kyc/idverify/applicant').create,
  },
  banklink: {
    createLinkToken: async (fields: BodyOf<'POST', '/v2/banklink/link-token'> = {}, options: CallOptions = {}) =>
      (await request('POST', '/v2/banklink/link-token', { body: fields, ...options })).data,
    exchange: async (fields: BodyOf<'POST', '/v2/banklink/exchange'>, options: CallOptions = {}) =>
      (await request('POST', '/v2/banklink/exchange', { body: fields, ...options })).data,
  },
  /** For display only: no estimate is executable. */
  estimates: {
    create: async (fields: BodyOf<'POST', '/v2/estimate'>, options: CallOptions = {}) =>
      (await request('POST', '/v2/estimate', { body: fields, ...REPEATABLE, ...options })).data,
    fees: async (fields: BodyOf<'POST', '/v1/fees/estimate'>, options: CallOptions = {}) =>
      (await request('POST', '/v1/fees/estimate', { body: fields, ...REPEATABLE, ...options })).data,
  },
  /** Moves the simulation; only in the local sandbox. */
  sandbox: {
    sendEvent: async (
      settlementId: string,
      fields: BodyOf<'POST', '/v2/test-helpers/settlements/{settlement_id}/events'>,
      options: CallOptions = {},
    ) => {
      const input = { path: { settlement_id: settlementId }, body: fields, ...options };
      return (await request('POST', '/v2/test-helpers/settlements/{settlement_id}/events', input)).data;
    },
    advance: async (
      settlementId: string,
      fields: BodyOf<'POST', '/v2/test-helpers/settlements/{settlement_id}/advance'> = {},
      options: CallOptions = {},
    ) => {
      const input = { path: { settlement_id: settlementId }, body: fields, ...options };
      return (await request('POST', '/v2/test-helpers/settlements/{settlement_id}/advance', input)).data;
    },
    scenarios: async (options: CallOptions = {}) => (await request('GET', '/v2/test-helpers/scenarios', options)).data,
  },
});
