/** A person sends money (contract §12): the whole way, with real mail, real workflows and a real settlement. */
import { tsToMs } from '@temporalio/common/lib/time.js';
import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { otpChallenges } from '../../db/schema/index.ts';
import { otpWorkflowId } from '../../domain/workflow-id.ts';
import {
  callAs,
  createConsumerRecipient,
  createQuote,
  newEmail,
  requestOtp,
  signIn,
  transfer,
  verifyOtp,
} from '../support/consumer.ts';
import { FILE, withStack } from '../support/fixture.ts';
import { historyText } from '../support/history.ts';
import { codeIn, startMailServer } from '../support/mail-server.ts';
import { type Json, jsonOf } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { startStack } from '../support/stack.ts';

const test = withStack()
  .extend('email', FILE, newEmail())
  .extend('consumer', FILE, ({ api, email }) => signIn(api, { email }))
  .extend('untilStatus', FILE, ({ api, consumer }) => async (transferId: string, status: string): Promise<Json> => {
    const read = async (): Promise<Json> =>
      jsonOf(await callAs(api, consumer, 'GET', `/consumer/transfers/${transferId}`));
    await expect.poll(async () => (await read()).status, WAIT).toBe(status);
    return await read();
  })
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  .extend('mailServer', FILE, async ({}, { onCleanup }) => {
    const mailServer = await startMailServer();
    onCleanup(mailServer.close);
    return mailServer;
  })
  .extend('remote', FILE, async ({ mailServer }, { onCleanup }) => {
    const smtpUrl = `smtp://127.0.0.1:${mailServer.port}?tls.rejectUnauthorized=false`;
    const remote = await startStack({ api: { runtime: 'remote-sandbox', config: { smtpUrl } } });
    onCleanup(remote.close);
    return remote;
  });

describe("a consumer's transfer", () => {
  test('settles a quote with a certificate, and its key gets the same answer again', async ({
    api,
    consumer,
    untilStatus,
  }) => {
    const recipientId = await createConsumerRecipient(api, consumer);
    const quote = await createQuote(api, consumer);
    const body = { quote_id: quote.quote_id, recipient_id: recipientId, card_token: 'tok_visa' };
    const key = crypto.randomUUID();
    const first = await transfer(api, consumer, body, key);
    expect(first.statusCode).toBe(201);
    const settled = await untilStatus(jsonOf(first).transfer_id, 'settled');
    expect(settled).toMatchObject({
      amount: quote.amount,
      destination_amount: quote.destination_amount,
      amount_received: '250.00',
      failure: null,
    });
    expect(settled.certificate_id).toMatch(/^CERT-[0-9A-F]{32}$/);
    expect(settled.timeline.map((step: Json) => step.status)).toEqual([
      'accepted',
      'awaiting_funds',
      'funded',
      'paying_out',
      'settled',
    ]);
    const again = await transfer(api, consumer, body, key);
    expect([again.statusCode, again.body, again.headers['idempotency-replayed']]).toEqual([201, first.body, 'true']);
  });
});

describe('a sign-in in a remote runtime', () => {
  test('works with the code from the mail, which is in no answer, no row and no history', async ({
    remote,
    mailServer,
  }) => {
    const email = newEmail();
    const answer = await requestOtp(remote.api, { email });
    const { challenge_id: challengeId } = jsonOf(answer);
    await expect.poll(() => mailServer.messages.length, WAIT).toBe(1);
    const [mail] = mailServer.messages;
    const code = codeIn(mail?.text ?? '') ?? expect.fail('no code in the mail');
    expect([mail?.to, mail?.encrypted]).toEqual([[email], true]);
    expect(answer.body).not.toContain(code);
    const handle = remote.temporal.workflow.getHandle(otpWorkflowId(challengeId));
    expect(await handle.result()).toEqual({ outcome: 'sent' });
    const [row] = await remote.api.connection.db
      .select()
      .from(otpChallenges)
      .where(eq(otpChallenges.challengeId, challengeId));
    expect(row?.codeSealed).toBeNull();
    const history = await handle.fetchHistory();
    const scheduled = history.events?.find((event) => event.activityTaskScheduledEventAttributes);
    // The 50 s of a mail are over before Temporal takes its activity for lost, and sends the mail again.
    expect(tsToMs(scheduled?.activityTaskScheduledEventAttributes?.startToCloseTimeout)).toBeGreaterThan(50_000);
    const text = historyText(history);
    expect(text).toContain(challengeId);
    expect(text).not.toContain(email);
    expect(text).not.toMatch(new RegExp(`(?<![0-9])${code}(?![0-9])`));
    const session = await verifyOtp(remote.api, challengeId, code);
    const consumer = { consumerId: jsonOf(session).consumer_id, token: jsonOf(session).access_token };
    expect(jsonOf(await callAs(remote.api, consumer, 'GET', '/consumer/me'))).toMatchObject({
      email,
      consumer_id: consumer.consumerId,
    });
  });

  test('answers at once while no worker runs, and the mail comes when a worker runs again', async ({
    remote,
    mailServer,
  }) => {
    await remote.stopWorker();
    const email = newEmail();
    expect((await requestOtp(remote.api, { email })).statusCode).toBe(200);
    expect(mailServer.messages.filter(({ to }) => to.includes(email))).toEqual([]);
    await remote.startWorker();
    await expect.poll(() => mailServer.messages.filter(({ to }) => to.includes(email)).length, WAIT).toBe(1);
  });
});
