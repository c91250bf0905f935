/** One-time codes by mail (contract §12), over a real SMTP server: sent once while they are valid, and then erased. */
import { eq } from 'drizzle-orm';
import { afterEach, describe, expect } from 'vitest';
import type { ActivityDeps } from '../../activities/deps.ts';
import { otpActivities } from '../../activities/otp.ts';
import { createMailer } from '../../activities/providers/mailer.ts';
import { otpChallenges } from '../../db/schema/index.ts';
import { activityDeps } from '../support/activity.ts';
import { createTestApi } from '../support/api.ts';
import { challenge, newEmail, verifyOtp } from '../support/consumer.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { codeIn, startMailServer } from '../support/mail-server.ts';

const CODE_VALIDITY_MS = 5 * 60_000;
const REFUSED = 'nobody@example.com';

/** An SMTP reply: permanent from 500 on. */
const reply = (responseCode: number): Error =>
  Object.assign(new Error(`no mailbox, says ${responseCode}`), { responseCode });

/** How the mail server behaves; it is reset after each test. */
const smtp: { isBusy: boolean } = { isBusy: false };
afterEach(() => {
  smtp.isBusy = false;
});

const test = withApi()
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  .extend('mailServer', FILE, async ({}, { onCleanup }) => {
    const mailServer = await startMailServer({
      onRcptTo: ({ address }, _session, done) =>
        done(address === REFUSED ? reply(550) : smtp.isBusy ? reply(451) : null),
    });
    onCleanup(mailServer.close);
    return mailServer;
  })
  .extend('api', FILE, async ({ clock, mailServer }, { onCleanup }) => {
    const smtpUrl = `smtp://127.0.0.1:${mailServer.port}?tls.rejectUnauthorized=false`;
    const api = await createTestApi({ config: { smtpUrl }, deps: { now: clock.now } });
    onCleanup(api.close);
    return api;
  })
  .extend('world', FILE, ({ api, clock, mailServer }) => {
    const { db } = api.connection;
    return {
      sendOtp: (challengeId: string, deps: Partial<ActivityDeps> = {}) => {
        const base = activityDeps(api, 'http://127.0.0.1:1', { nudge: () => undefined });
        return otpActivities({ ...base, now: clock.now, ...deps }).sendOtp({ challengeId });
      },
      sealedCode: async (challengeId: string) => {
        const [row] = await db.select().from(otpChallenges).where(eq(otpChallenges.challengeId, challengeId));
        return row?.codeSealed;
      },
      mailsTo: (address: string) => mailServer.messages.filter(({ to }) => to.includes(address)),
    };
  });

describe('a code is not sent', () => {
  test('an expired code is erased instead', async ({ world, api, clock }) => {
    const email = newEmail();
    const { id } = await challenge(api, { email });
    clock.advance(CODE_VALIDITY_MS);
    expect(await world.sendOtp(id)).toEqual({ outcome: 'not_needed' });
    expect([world.mailsTo(email), await world.sealedCode(id)]).toEqual([[], null]);
  });

  test('a code that was used before its e-mail is not sent', async ({ world, api }) => {
    const email = newEmail();
    const { id, code } = await challenge(api, { email });
    expect((await verifyOtp(api, id, code)).statusCode).toBe(200);
    expect(await world.sealedCode(id)).toBeNull();
    expect(await world.sendOtp(id)).toEqual({ outcome: 'not_needed' });
    expect(world.mailsTo(email)).toEqual([]);
  });

  test('an unknown challenge sends nothing', async ({ world }) => {
    expect(await world.sendOtp(crypto.randomUUID())).toEqual({ outcome: 'not_needed' });
  });

  test('a missing mail server fails the activity without a retry', async ({ world, api }) => {
    const { id } = await challenge(api);
    await expect(world.sendOtp(id, { mailer: undefined })).rejects.toMatchObject({ code: 'provider_not_configured' });
  });

  test('a code for a permanently refused recipient is erased', async ({ world, api }) => {
    const { id } = await challenge(api, { email: REFUSED });
    expect(await world.sendOtp(id)).toEqual({ outcome: 'refused' });
    expect([world.mailsTo(REFUSED), await world.sealedCode(id)]).toEqual([[], null]);
  });

  test('no mail leaves a remote runtime without TLS', async ({ world, api }) => {
    const plain = await startMailServer({ disabledCommands: ['STARTTLS'] });
    const { id } = await challenge(api);
    const mailer = createMailer({
      smtpUrl: `smtp://127.0.0.1:${plain.port}`,
      publicBaseUrl: 'https://api.example.com',
      runtime: 'production',
    });
    await expect(world.sendOtp(id, { mailer })).rejects.toMatchObject({ code: 'ETLS' });
    expect(plain.messages).toEqual([]);
    await plain.close();
  });
});

describe('a code is sent', () => {
  test('only to its contact, in a text that names its validity, and opens a session', async ({ world, api }) => {
    const email = newEmail();
    const { id, code } = await challenge(api, { email });
    expect(await world.sealedCode(id)).not.toContain(code);
    expect(await world.sendOtp(id)).toEqual({ outcome: 'sent' });
    const [mail, ...more] = world.mailsTo(email);
    expect([mail?.to, more]).toEqual([[email], []]);
    expect(codeIn(mail?.text ?? '')).toBe(code);
    expect(mail?.text).toContain('valid for 5 minutes');
    expect(mail?.text).toMatch(/^Auto-Submitted: auto-generated\r$/m);
    expect(mail?.text).toMatch(new RegExp(`^Message-ID: <otp\\.${id}@127\\.0\\.0\\.1>\\r$`, 'm'));
    expect(/^Subject: (.*)\r$/m.exec(mail?.text ?? '')?.[1]).toBe('Your one-time code');
    expect((await verifyOtp(api, id, code)).statusCode).toBe(200);
  });

  test('exactly once, however often the activity runs, and is erased', async ({ world, api }) => {
    const email = newEmail();
    const { id } = await challenge(api, { email });
    expect([await world.sendOtp(id), await world.sendOtp(id)]).toEqual([
      { outcome: 'sent' },
      { outcome: 'not_needed' },
    ]);
    expect([world.mailsTo(email).length, await world.sealedCode(id)]).toEqual([1, null]);
  });

  test('twice, as the same message, after a crash between the mail and its record', async ({ world, api }) => {
    const email = newEmail();
    const { id } = await challenge(api, { email });
    const before = await world.sealedCode(id);
    await world.sendOtp(id);
    await api.connection.db
      .update(otpChallenges)
      .set({ codeSealed: before ?? null })
      .where(eq(otpChallenges.challengeId, id));
    expect(await world.sendOtp(id)).toEqual({ outcome: 'sent' });
    const ids = world.mailsTo(email).map(({ text }) => /^Message-ID: (.*)\r$/m.exec(text)?.[1]);
    expect([ids.length, new Set(ids).size]).toEqual([2, 1]);
  });

  test('an e-mail that a busy server refuses is sent later, and its code is kept until then', async ({
    world,
    api,
  }) => {
    const email = newEmail();
    const { id, code } = await challenge(api, { email });
    smtp.isBusy = true;
    await expect(world.sendOtp(id)).rejects.toThrow();
    expect(await world.sealedCode(id)).not.toBeNull();
    smtp.isBusy = false;
    expect(await world.sendOtp(id)).toEqual({ outcome: 'sent' });
    expect(world.mailsTo(email).map(({ text }) => codeIn(text))).toEqual([code]);
  });

  test('only over TLS in a remote runtime, from the configured sender', async ({ world, api, mailServer }) => {
    const email = newEmail();
    const { id } = await challenge(api, { email });
    const smtpUrl = `smtp://127.0.0.1:${mailServer.port}?tls.rejectUnauthorized=false&from=codes@bank.example`;
    expect(
      await world.sendOtp(id, {
        mailer: createMailer({ smtpUrl, publicBaseUrl: 'https://api.example.com', runtime: 'production' }),
      }),
    ).toEqual({ outcome: 'sent' });
    const [mail] = world.mailsTo(email);
    expect(mail).toMatchObject({ encrypted: true, text: expect.stringContaining('From: codes@bank.example\r\n') });
  });
});
