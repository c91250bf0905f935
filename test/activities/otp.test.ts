/** One-time codes by mail (contract §12), over a real SMTP server: sent while they are valid, once, and then forgotten. */
import { eq } from 'drizzle-orm';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { ActivityDeps } from '../../activities/deps.ts';
import { otpActivities } from '../../activities/otp.ts';
import { createMailer } from '../../activities/providers/mailer.ts';
import { otpChallenges } from '../../db/schema/index.ts';
import { activityDeps } from '../support/activity.ts';
import { createTestApi, type TestApi } from '../support/api.ts';
import { challenge, newEmail, verifyOtp } from '../support/consumer.ts';
import { codeIn, type MailServer, startMailServer } from '../support/mail-server.ts';

const CODE_VALIDITY_MS = 5 * 60_000;
const REFUSED = 'nobody@example.com';

/** An SMTP reply: permanent from 500 on. */
const reply = (responseCode: number): Error =>
  Object.assign(new Error(`no mailbox, says ${responseCode}`), { responseCode });

let server: MailServer;
let api: TestApi;
let busy = false;
let aheadMs = 0;

beforeAll(async () => {
  server = await startMailServer({
    onRcptTo: ({ address }, _session, done) => done(address === REFUSED ? reply(550) : busy ? reply(451) : null),
  });
  api = await createTestApi({ config: { smtpUrl: `smtp://127.0.0.1:${server.port}?tls.rejectUnauthorized=false` } });
});
afterEach(() => {
  busy = false;
  aheadMs = 0;
});
afterAll(async () => {
  await api.close();
  await server.close();
});

const sendOtp = (challengeId: string, deps: Partial<ActivityDeps> = {}) => {
  const base = activityDeps(api, 'http://127.0.0.1:1', { nudge: () => undefined });
  return otpActivities({ ...base, now: () => new Date(Date.now() + aheadMs), ...deps }).sendOtp({ challengeId });
};
const sealedCode = async (id: string) =>
  (
    await api.connection.db
      .select({ sealed: otpChallenges.codeSealed })
      .from(otpChallenges)
      .where(eq(otpChallenges.challengeId, id))
  )[0]?.sealed;
const mailsTo = (address: string) => server.messages.filter(({ to }) => to.includes(address));

describe('a code is not sent', () => {
  test('once it is not valid any more, and is forgotten', async () => {
    const email = newEmail();
    const { id } = await challenge(api, { email });
    aheadMs = CODE_VALIDITY_MS;
    expect(await sendOtp(id)).toEqual({ outcome: 'not_needed' });
    expect([mailsTo(email), await sealedCode(id)]).toEqual([[], null]);
  });

  test('once it was used', async () => {
    const email = newEmail();
    const { id, code } = await challenge(api, { email });
    expect((await verifyOtp(api, id, code)).statusCode).toBe(200);
    expect(await sealedCode(id)).toBeNull();
    expect(await sendOtp(id)).toEqual({ outcome: 'not_needed' });
    expect(mailsTo(email)).toEqual([]);
  });

  test('for a challenge that there is not', async () => {
    expect(await sendOtp(crypto.randomUUID())).toEqual({ outcome: 'not_needed' });
  });

  test('without a sender: the step fails for good and says so', async () => {
    const { id } = await challenge(api);
    await expect(sendOtp(id, { mailer: undefined })).rejects.toMatchObject({ code: 'provider_not_configured' });
  });

  test('to a recipient whom the server refuses for good, and is forgotten', async () => {
    const { id } = await challenge(api, { email: REFUSED });
    expect(await sendOtp(id)).toEqual({ outcome: 'refused' });
    expect([mailsTo(REFUSED), await sealedCode(id)]).toEqual([[], null]);
  });

  test('over a connection without TLS in a remote runtime', async () => {
    const plain = await startMailServer({ disabledCommands: ['STARTTLS'] });
    const { id } = await challenge(api);
    const mailer = createMailer({
      smtpUrl: `smtp://127.0.0.1:${plain.port}`,
      publicBaseUrl: 'https://api.example.com',
      runtime: 'production',
    });
    await expect(sendOtp(id, { mailer })).rejects.toMatchObject({ code: 'ETLS' });
    expect(plain.messages).toEqual([]);
    await plain.close();
  });
});

describe('a code is sent', () => {
  test('to its contact alone, with the text that says how long it lasts, and opens a session', async () => {
    const email = newEmail();
    const { id, code } = await challenge(api, { email });
    expect(await sealedCode(id)).not.toContain(code);
    expect(await sendOtp(id)).toEqual({ outcome: 'sent' });
    const [mail, ...more] = mailsTo(email);
    expect([mail?.to, more]).toEqual([[email], []]);
    expect(codeIn(mail?.text ?? '')).toBe(code);
    expect(mail?.text).toContain('valid for 5 minutes');
    expect(mail?.text).toMatch(/^Auto-Submitted: auto-generated\r$/m);
    expect(mail?.text).toMatch(new RegExp(`^Message-ID: <otp\\.${id}@127\\.0\\.0\\.1>\\r$`, 'm'));
    expect(/^Subject: (.*)\r$/m.exec(mail?.text ?? '')?.[1]).toBe('Your one-time code');
    expect((await verifyOtp(api, id, code)).statusCode).toBe(200);
  });

  test('once, however often the step is repeated, and its text is forgotten', async () => {
    const email = newEmail();
    const { id } = await challenge(api, { email });
    expect([await sendOtp(id), await sendOtp(id)]).toEqual([{ outcome: 'sent' }, { outcome: 'not_needed' }]);
    expect([mailsTo(email).length, await sealedCode(id)]).toEqual([1, null]);
  });

  test('again, as the same message, after a crash between sending and noting it', async () => {
    const email = newEmail();
    const { id } = await challenge(api, { email });
    const before = await sealedCode(id);
    await sendOtp(id);
    await api.connection.db
      .update(otpChallenges)
      .set({ codeSealed: before ?? null })
      .where(eq(otpChallenges.challengeId, id));
    expect(await sendOtp(id)).toEqual({ outcome: 'sent' });
    const ids = mailsTo(email).map(({ text }) => /^Message-ID: (.*)\r$/m.exec(text)?.[1]);
    expect([ids.length, new Set(ids).size]).toEqual([2, 1]);
  });

  test('at a later attempt where the server was busy, and the code waits for it', async () => {
    const email = newEmail();
    const { id, code } = await challenge(api, { email });
    busy = true;
    await expect(sendOtp(id)).rejects.toThrow();
    expect(await sealedCode(id)).not.toBeNull();
    busy = false;
    expect(await sendOtp(id)).toEqual({ outcome: 'sent' });
    expect(mailsTo(email).map(({ text }) => codeIn(text))).toEqual([code]);
  });

  test('over TLS in a remote runtime, from the sender that the configuration names', async () => {
    const email = newEmail();
    const { id } = await challenge(api, { email });
    const smtpUrl = `smtp://127.0.0.1:${server.port}?tls.rejectUnauthorized=false&from=codes@bank.example`;
    expect(
      await sendOtp(id, {
        mailer: createMailer({ smtpUrl, publicBaseUrl: 'https://api.example.com', runtime: 'production' }),
      }),
    ).toEqual({
      outcome: 'sent',
    });
    const [mail] = mailsTo(email);
    expect(mail).toMatchObject({ encrypted: true, text: expect.stringContaining('From: codes@bank.example\r\n') });
  });
});
