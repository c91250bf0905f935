/** A person sends money (contract §12): the whole way, with real mail, real workflows and a real settlement. */
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { otpChallenges } from '../../db/schema/index.ts';
import { otpWorkflowId, settlementWorkflowId } from '../../domain/workflow-id.ts';
import {
  type ConsumerCaller,
  callAs,
  createConsumerRecipient,
  createQuote,
  newEmail,
  requestOtp,
  signIn,
  transfer,
  transferBody,
  verifyOtp,
} from '../support/consumer.ts';
import { historyText } from '../support/history.ts';
import { codeIn, type MailServer, startMailServer } from '../support/mail-server.ts';
import { type Json, jsonOf } from '../support/partner.ts';
import { startStack, type TestStack } from '../support/stack.ts';

const WAIT = { timeout: 20_000, interval: 25 };

describe('a transfer', () => {
  let stack: TestStack;
  let consumer: ConsumerCaller;
  const email = newEmail();
  beforeAll(async () => {
    stack = await startStack();
    consumer = await signIn(stack.api, { email });
  });
  afterAll(() => stack.close());

  const read = async (transferId: string): Promise<Json> =>
    jsonOf(await callAs(stack.api, consumer, 'GET', `/consumer/transfers/${transferId}`));
  const untilStatus = async (transferId: string, status: string): Promise<Json> => {
    await expect.poll(async () => (await read(transferId)).status, WAIT).toBe(status);
    return read(transferId);
  };

  test('of a quote is settled, with its certificate, and answers the same for ever', async () => {
    const recipientId = await createConsumerRecipient(stack.api, consumer);
    const quote = await createQuote(stack.api, consumer);
    const body = { quote_id: quote.quote_id, recipient_id: recipientId, card_token: 'tok_visa' };
    const key = crypto.randomUUID();
    const first = await transfer(stack.api, consumer, body, key);
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
    const again = await transfer(stack.api, consumer, body, key);
    expect([again.statusCode, again.body, again.headers['idempotency-replayed']]).toEqual([201, first.body, 'true']);
    const other = await transfer(stack.api, consumer, { ...body, card_token: 'tok_declined' }, key);
    expect(jsonOf(other)).toMatchObject({ status: 409, mismatch: ['card_token'] });
  });

  test('whose card is declined fails, and says why', async () => {
    const body = transferBody(await createConsumerRecipient(stack.api, consumer), { card_token: 'tok_declined' });
    const { transfer_id: transferId } = jsonOf(await transfer(stack.api, consumer, body));
    expect((await untilStatus(transferId, 'failed')).failure.code).toBe('card_declined');
  });

  test('leaves nothing personal in its history', async () => {
    const name = 'Zebedee Uniqueconsumer';
    const body = transferBody(await createConsumerRecipient(stack.api, consumer, { name }), {
      reference: 'Private-Reference-91',
    });
    const made = jsonOf(await transfer(stack.api, consumer, body));
    await untilStatus(made.transfer_id, 'settled');
    const handle = stack.temporal.workflow.getHandle(settlementWorkflowId(made.settlement_id));
    await handle.result();
    const text = historyText(await handle.fetchHistory());
    for (const secret of [name, email, 'Private-Reference-91', 'tok_visa', consumer.token])
      expect(text).not.toContain(secret);
    expect(text).toContain(made.settlement_id);
  });
});

describe('a sign-in in a remote runtime', () => {
  let stack: TestStack;
  let mails: MailServer;
  beforeAll(async () => {
    mails = await startMailServer();
    stack = await startStack({
      api: {
        runtime: 'remote-sandbox',
        config: { smtpUrl: `smtp://127.0.0.1:${mails.port}?tls.rejectUnauthorized=false` },
      },
    });
  });
  afterAll(async () => {
    await stack.close();
    await mails.close();
  });

  test('by the code that came by mail, which no answer, no row and no history has', async () => {
    const email = newEmail();
    const answer = await requestOtp(stack.api, { email });
    const { challenge_id: challengeId } = jsonOf(answer);
    await expect.poll(() => mails.messages.length, WAIT).toBe(1);
    const [mail] = mails.messages;
    const code = codeIn(mail?.text ?? '') ?? expect.fail('no code in the mail');
    expect([mail?.to, mail?.encrypted]).toEqual([[email], true]);
    expect(answer.body).not.toContain(code);
    const handle = stack.temporal.workflow.getHandle(otpWorkflowId(challengeId));
    expect(await handle.result()).toEqual({ outcome: 'sent' });
    const [row] = await stack.api.connection.db
      .select()
      .from(otpChallenges)
      .where(eq(otpChallenges.challengeId, challengeId));
    expect(row?.codeSealed).toBeNull();
    const text = historyText(await handle.fetchHistory());
    expect(text).toContain(challengeId);
    expect(text).not.toContain(email);
    expect(text).not.toMatch(new RegExp(`(?<![0-9])${code}(?![0-9])`));
    const session = await verifyOtp(stack.api, challengeId, code);
    const caller = { consumerId: jsonOf(session).consumer_id, token: jsonOf(session).access_token };
    expect(jsonOf(await callAs(stack.api, caller, 'GET', '/consumer/me'))).toMatchObject({
      email,
      consumer_id: caller.consumerId,
    });
  });

  test('while no worker runs: the request answers at once, and the mail comes when one is back', async () => {
    await stack.stopWorker();
    const email = newEmail();
    expect((await requestOtp(stack.api, { email })).statusCode).toBe(200);
    expect(mails.messages.filter(({ to }) => to.includes(email))).toEqual([]);
    await stack.startWorker();
    await expect.poll(() => mails.messages.filter(({ to }) => to.includes(email)).length, WAIT).toBe(1);
  });
});
