/** The client of one consumer: a person with a session, instead of an organization with a key (contract §12). */
import { downloadCertificate, downloadSignedFile } from './catalog.ts';
import { type ConnectionOptions, requireCredential, transportOptions } from './client.ts';
import type { AnswerOf, BodyOf } from './operation.ts';
import { createRequest, creationAt, listAt } from './request.ts';
import { heldRead, REPEATABLE } from './settlement.ts';
import { type CallOptions, createTransport, filledPath } from './transport.ts';
import { type WaitOptions, waitFor } from './wait.ts';

export type Transfer = AnswerOf<'GET', '/consumer/transfers/{transfer_id}'>;

export type ConsumerClientOptions = ConnectionOptions & {
  /** Of a session that is open already; `verifyOtp` opens one. */
  readonly accessToken?: string | undefined;
};

/** One client is one consumer: after `verifyOtp` it holds the session's token. */
export function createConsumerClient({ accessToken, ...options }: ConsumerClientOptions) {
  requireCredential('accessToken', accessToken);
  let token = accessToken;
  const send = createTransport(
    transportOptions(options, () => (token === undefined ? undefined : { Authorization: `Bearer ${token}` })),
  );
  const request = createRequest(send);
  const at = (transferId: string) => ({ transfer_id: transferId });
  const certificateOf = (transferId: string) =>
    filledPath('/consumer/transfers/{transfer_id}/certificate', at(transferId));
  return {
    /** Sends a code to an email address or a phone. The local sandbox answers with it. */
    requestOtp: async (contact: BodyOf<'POST', '/consumer/auth/request-otp'>, call: CallOptions = {}) =>
      (await request('POST', '/consumer/auth/request-otp', { body: contact, ...call })).data,
    /** Opens the session. A code is for one use, so this is not repeated by itself. */
    verifyOtp: async (answer: BodyOf<'POST', '/consumer/auth/verify-otp'>, call: CallOptions = {}) => {
      const { data } = await request('POST', '/consumer/auth/verify-otp', { body: answer, ...call });
      token = data.access_token;
      return data;
    },
    logout: async (call: CallOptions = {}): Promise<void> => {
      await request('POST', '/consumer/auth/logout', call);
      token = undefined;
    },
    me: async (call: CallOptions = {}) => (await request('GET', '/consumer/me', call)).data,
    recipients: {
      ...creationAt(send, '/consumer/recipients'),
      list: (call?: CallOptions) => listAt(send, '/consumer/recipients', undefined, call),
      verify: async (recipientId: string, call: CallOptions = {}) => {
        const path = { recipient_id: recipientId };
        return (await request('POST', '/consumer/recipients/{recipient_id}/verify', { path, ...call })).data;
      },
    },
    banklink: {
      createLinkToken: async (fields: BodyOf<'POST', '/consumer/banklink/link-token'> = {}, call: CallOptions = {}) =>
        (await request('POST', '/consumer/banklink/link-token', { body: fields, ...call })).data,
      exchange: async (fields: BodyOf<'POST', '/consumer/banklink/exchange'>, call: CallOptions = {}) =>
        (await request('POST', '/consumer/banklink/exchange', { body: fields, ...call })).data,
    },
    quotes: {
      create: async (fields: BodyOf<'POST', '/consumer/quote'>, call: CallOptions = {}) =>
        (await request('POST', '/consumer/quote', { body: fields, ...call })).data,
    },
    transfers: {
      ...creationAt(send, '/consumer/transfers'),
      get: async (transferId: string, call: CallOptions = {}): Promise<Transfer> =>
        (await request('GET', '/consumer/transfers/{transfer_id}', { path: at(transferId), ...call })).data,
      list: (call?: CallOptions) => listAt(send, '/consumer/transfers', undefined, call),
      /** As `settlements.wait`. */
      wait: async (transferId: string, wait?: WaitOptions<Transfer>): Promise<Transfer> =>
        waitFor(
          (hold, read) =>
            request('GET', '/consumer/transfers/{transfer_id}', {
              path: at(transferId),
              ...heldRead(hold, read),
            }),
          wait,
        ),
      cancel: async (transferId: string, call: CallOptions = {}): Promise<Transfer> =>
        (
          await request('POST', '/consumer/transfers/{transfer_id}/cancel', {
            path: at(transferId),
            ...REPEATABLE,
            ...call,
          })
        ).data,
      certificate: async (transferId: string, call?: CallOptions) =>
        downloadCertificate(send, certificateOf(transferId), call),
      /** As `certificates.downloadSigned` of the partner's client. */
      signedCertificate: async (transferId: string, call?: CallOptions) =>
        downloadSignedFile(send, certificateOf(transferId), call),
    },
  };
}

export type ConsumerClient = ReturnType<typeof createConsumerClient>;
