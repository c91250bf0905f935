/** One-time codes by mail (contract §12), over a real SMTP server: sent once while they are valid, and then erased. */
import { eq, sql } from 'drizzle-orm';
import { describe, expect, vi } from 'vitest';
import type { ActivityDeps } from '../../activities/deps.ts';
import { failureOf } from '../../activities/failure.ts';
import { createActivities } from '../../activities/index.ts';
import { otpActivities } from '../../activities/otp.ts';
import { createMailer, type MailerSettings } from '../../activities/providers/mailer.ts';
import { otpChallenges } from '../../db/schema/index.ts';
import { activityDeps } from '../support/activity.ts';
import { createTestApi } from '../support/api.ts';
import { challenge, newEmail, verifyOtp } from '../support/consumer.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { codeIn, type FakeReply, startFakeMailServer, startMailServer } from '../support/mail-server.ts';
import { WAIT } from '../support/patience.ts';

const HOURS_MS = 5 * 3_600_000;
const isOf = (challengeId: string) => eq(otpChallenges.challengeId, challengeId);

const answeredTo = (verb: string, command: string, text: string, afterMs = 0): FakeReply =>
  command.startsWith(verb) ? { text, afterMs } : undefined;

const test = withApi()
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  .extend('mailServer', FILE, async ({}, { onCleanup }) => {
    const mailServer = await startMailServer();
    onCleanup(mailServer.close);
    return mailServer;
  })
  .extend('api', FILE, async ({ mailServer }, { onCleanup }) => {
    const smtpUrl = `smtp://127.0.0.1:${mailServer.port}?tls.rejectUnauthorized=false`;
    const api = await createTestApi({ config: { smtpUrl } });
    onCleanup(api.close);
    return api;
  })
  /** A mailer for a server that answers as the test says, to which it may log in. */
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  .extend('fakeServer', async ({}, { onCleanup }) => {
    const closing: (() => Promise<void>)[] = [];
    onCleanup(async () => {
      for (const close of closing) await close();
    });
    return async (replyTo: (command: string) => FakeReply, login = '', timing?: MailerSettings['timing']) => {
      const ehlo = (command: string): FakeReply =>
        login !== '' && command.startsWith('EHLO') ? { text: '250-fake\r\n250 AUTH PLAIN', afterMs: 0 } : undefined;
      const server = await startFakeMailServer((command) => replyTo(command) ?? ehlo(command));
      closing.push(server.close);
      const smtpUrl = `smtp://${login}127.0.0.1:${server.port}`;
      return {
        ...server,
        mailer: createMailer({ smtpUrl, publicBaseUrl: 'http://127.0.0.1', runtime: 'local-sandbox', timing }),
      };
    };
  })
  .extend('world', FILE, ({ api, mailServer }) => {
    const { db } = api.connection;
    return {
      sendOtp: (challengeId: string, deps: Partial<ActivityDeps> = {}) =>
        otpActivities({ ...activityDeps(api), ...deps }).sendOtp({ challengeId }),
      sealedCode: async (challengeId: string) => {
        const [row] = await db.select().from(otpChallenges).where(isOf(challengeId));
        return row?.codeSealed;
      },
      mailsTo: (address: string) => mailServer.messages.filter(({ to }) => to.includes(address)),
    };
  });

describe('a code is not sent', () => {
  test('an expired code is erased instead', async ({ world, api }) => {
    const email = newEmail();
    const { id } = await challenge(api, { email });
    await api.connection.db.update(otpChallenges).set({ expiresAt: sql`now()` }).where(isOf(id));
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

  test('by a worker without a mail server, which leaves it to another one', async ({ world, api }) => {
    const { id } = await challenge(api);
    const error = await world.sendOtp(id, { mailer: undefined }).catch(failureOf);
    expect(error).toMatchObject({ type: 'dependency:mail_server', nonRetryable: false });
    expect(await world.sendOtp(id)).toEqual({ outcome: 'sent' });
  });

  test.for([
    '550 5.1.1 User unknown',
    '550-5.1.1 The account that you tried to reach\r\n550 5.1.1 does not exist',
    '550 5.1.10 Recipient has a null MX',
    '552 5.2.2 Mailbox full',
    '550 No such user',
    '551 User not local',
    '553 Mailbox name not allowed',
  ])('to a recipient that the server refuses by %j: it is erased', async (text, { world, api, fakeServer }) => {
    const { id } = await challenge(api);
    const { mailer } = await fakeServer((command) => answeredTo('RCPT', command, text));
    expect(await world.sendOtp(id, { mailer })).toEqual({ outcome: 'refused' });
    expect(await world.sealedCode(id)).toBeNull();
  });

  test.for([
    ['AUTH', '535 5.7.8 Authentication failed', 'EAUTH'],
    ['MAIL', '530 5.7.0 Authentication required', 'SMTP_530_5.7.0'],
    ['MAIL', '550 5.7.1 Sender address rejected: not owned by user', 'SMTP_550_5.7.1'],
    ['MAIL', '550 5.4.5 Daily user sending limit exceeded', 'SMTP_550_5.4.5'],
    ['MAIL', '550 Sender refused', 'SMTP_550'],
    ['RCPT', '550 5.1.8 Sender address rejected: Domain not found', 'SMTP_550_5.1.8'],
    ['RCPT', '554 5.7.1 Relay access denied', 'SMTP_554_5.7.1'],
    ['RCPT', '554 No SMTP service here', 'SMTP_554'],
    ['RCPT', '450 4.2.1 Mailbox busy', 'SMTP_450_4.2.1'],
    ['DATA', '554 5.5.1 No valid recipients', 'SMTP_554_5.5.1'],
    ['.', '554 Message rejected: sending paused for this account', 'SMTP_554'],
  ] as const)(
    'while the server refuses our sender or account, by %s %j: it is kept, and sent later',
    async ([refused, text, type], { world, api, fakeServer }) => {
      const email = newEmail();
      const { id, code } = await challenge(api, { email });
      const login = refused === 'AUTH' ? 'user:password@' : '';
      const { mailer } = await fakeServer((command) => answeredTo(refused, command, text), login);
      const error = await world.sendOtp(id, { mailer }).catch(failureOf);
      expect(error).toMatchObject({ type: `dependency:${type}`, nonRetryable: false });
      expect(await world.sealedCode(id)).not.toBeNull();
      expect(await world.sendOtp(id)).toEqual({ outcome: 'sent' });
      expect(world.mailsTo(email).map(({ text: sent }) => codeIn(sent))).toEqual([code]);
    },
  );

  test('and the log has the outcome, without the address', async ({ api, fakeServer }) => {
    const email = newEmail();
    const { id } = await challenge(api, { email });
    const { mailer } = await fakeServer((command) => answeredTo('RCPT', command, `550 5.1.1 <${email}> unknown`));
    const lines: unknown[] = [];
    const log = {
      info: (fields: object, message: string) => lines.push({ ...fields, message }),
      warn: () => undefined,
    };
    const base = activityDeps(api);
    await createActivities({ ...base, mailer, log }).sendOtp({ challengeId: id });
    expect(lines).toEqual([
      expect.objectContaining({ activity: 'sendOtp', outcome: 'refused', message: 'activity done' }),
    ]);
    expect(JSON.stringify(lines)).not.toContain(email);
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

  test('also by a worker whose clock is hours ahead', async ({ world, api }) => {
    const { id } = await challenge(api);
    expect(await world.sendOtp(id, { now: () => new Date(Date.now() + HOURS_MS) })).toEqual({ outcome: 'sent' });
  });

  test('twice, as the same message, after a crash between the mail and its record', async ({ world, api }) => {
    const email = newEmail();
    const { id } = await challenge(api, { email });
    const before = await world.sealedCode(id);
    await world.sendOtp(id);
    await api.connection.db
      .update(otpChallenges)
      .set({ codeSealed: before ?? null })
      .where(isOf(id));
    expect(await world.sendOtp(id)).toEqual({ outcome: 'sent' });
    const ids = world.mailsTo(email).map(({ text }) => /^Message-ID: (.*)\r$/m.exec(text)?.[1]);
    expect([ids.length, new Set(ids).size]).toEqual([2, 1]);
  });

  test.for(['GREETING', '.'])(
    'once to a server that needs 6 s to answer %j',
    async (slow, { world, api, fakeServer }) => {
      const { id } = await challenge(api);
      const server = await fakeServer((command) => (command === slow ? { afterMs: 6_000 } : undefined));
      expect(await world.sendOtp(id, server)).toEqual({ outcome: 'sent' });
      expect([server.given(), await world.sealedCode(id)]).toEqual([1, null]);
    },
  );

  test.for([
    ['does not answer', { text: '250 ok', afterMs: HOURS_MS }],
    ['closes the connection', 'close'],
  ] as const)(
    'at most twice to a server that takes the mail and %s',
    async ([_what, reply], { world, api, fakeServer }) => {
      const { id } = await challenge(api);
      const timing = { phaseMs: 300, deadlineMs: 5_000 };
      const server = await fakeServer((command) => (command === '.' ? reply : undefined), '', timing);
      expect(await world.sendOtp(id, server)).toEqual({ outcome: 'unanswered' });
      expect(await world.sendOtp(id, server)).toEqual({ outcome: 'not_needed' });
      expect([server.given(), await world.sealedCode(id)]).toEqual([2, null]);
    },
  );

  test('a second time once a server that ended with the first mail takes mails again', async ({
    world,
    api,
    fakeServer,
  }) => {
    const { id } = await challenge(api);
    const closing = ['GREETING', '.', 'GREETING', 'GREETING'];
    const server = await fakeServer((command) => {
      if (closing[0] !== command) return undefined;
      closing.shift();
      return closing.length === 3 ? undefined : 'close';
    });
    expect(await world.sendOtp(id, server)).toEqual({ outcome: 'sent' });
    expect([server.given(), await world.sealedCode(id)]).toEqual([2, null]);
  });

  test('not by a dialogue without end: its connection is closed, and the code is kept', async ({
    world,
    api,
    fakeServer,
  }) => {
    const { id } = await challenge(api);
    const timing = { phaseMs: 20_000, deadlineMs: 300 };
    const server = await fakeServer((command) => answeredTo('RCPT', command, '250 ok', HOURS_MS), '', timing);
    expect(await world.sendOtp(id, server).catch(failureOf)).toMatchObject({ type: 'dependency:EABORT' });
    await vi.waitUntil(() => server.open() === 0, WAIT);
    expect([server.given(), typeof (await world.sealedCode(id))]).toEqual([0, 'string']);
  });

  test('by a worker that sends twenty at once: a further one waits, and is no failure', async ({ api, fakeServer }) => {
    const { id } = await challenge(api);
    const timing = { phaseMs: 20_000, deadlineMs: 3_000 };
    const server = await fakeServer(() => ({ afterMs: HOURS_MS }), '', timing);
    const activityEnded = vi.fn();
    const { sendOtp } = createActivities({
      ...activityDeps(api),
      mailer: server.mailer,
      observer: { activityEnded, payoutCallFailed: () => undefined, deliveryTaken: () => undefined },
    });
    const send = () => sendOtp({ challengeId: id }).catch(failureOf);
    const sent = Array.from({ length: 20 }, send);
    await vi.waitUntil(() => server.open() === 20, WAIT);
    expect(await send()).toMatchObject({ type: 'worker_busy', nonRetryable: false });
    expect(activityEnded).not.toHaveBeenCalled();
    const types = (await Promise.all(sent)).map((failure) => failure instanceof Error && failure.type);
    expect(types).toEqual(Array.from({ length: 20 }, () => 'dependency:EABORT'));
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
