/**
 * Mail by SMTP. A server that refuses the recipient is a result; every other failure is thrown, so that the activity is
 * retried: a refusal of our sender or account is a fault of the service, which an operator fixes. A remote runtime
 * sends mail only over TLS.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { createTransport } from 'nodemailer';
import { z } from 'zod';
import { isRemote, type RuntimeEnvironment } from '../../domain/runtime.ts';
import { withLinkedAbort } from '../linked-abort.ts';

/** `id` becomes the message id, so that a second copy is recognized. */
export type Mail = { readonly to: string; readonly subject: string; readonly text: string; readonly id: string };

export type Mailer = {
  /**
   * @param stop ends the dialogue: its connection is closed
   * @returns `refused` when the server permanently refuses mail to this recipient. `unanswered` when it took the whole
   *   mail and did not answer: it probably has it. The mail was sent once more then, and is not sent again
   * @throws Error when the server is not reachable, fails, or refuses what is ours; the mail may be sent again
   */
  send(mail: Mail, stop: AbortSignal): Promise<MailOutcome>;
};

export type MailOutcome = 'sent' | 'refused' | 'unanswered';

/**
 * `phaseMs`: for the connection up to the greeting, and for each answer after it. Servers look up the sender before
 * they greet, and scan a mail before they take it. `deadlineMs`: for a mail, its second copy included; less than the
 * activity's timeout (workflows/activities.ts).
 */
const TIMING = { phaseMs: 20_000, deadlineMs: 50_000 } as const;
/** The wait between two tries to send the second copy. */
const AGAIN_MS = 1_000;
/**
 * The answers to RCPT that are about the recipient's mailbox (RFC 3463). 5.1.7 and 5.1.8 are about the sender's, and
 * 5.7.1, for example, about what our account may send.
 */
const MAILBOX_REFUSED = /^5\.(1\.(?![78]$)|2\.)/;
/** The same for a server that gives no such status. */
const MAILBOX_REFUSED_CODES = new Set([550, 551, 553]);

export type MailerSettings = {
  readonly smtpUrl: string | undefined;
  readonly publicBaseUrl: string;
  readonly runtime: RuntimeEnvironment;
  readonly timing?: { readonly phaseMs: number; readonly deadlineMs: number } | undefined;
};

/**
 * The sender is the `from` parameter of the SMTP URL, or `no-reply` at the service's own host.
 *
 * @returns undefined when no server is configured
 */
export function createMailer(settings: MailerSettings): Mailer | undefined {
  const { smtpUrl, publicBaseUrl, runtime, timing: { phaseMs, deadlineMs } = TIMING } = settings;
  if (smtpUrl === undefined) return undefined;
  const host = new URL(publicBaseUrl).hostname;
  const from = new URL(smtpUrl).searchParams.get('from') ?? `no-reply@${host}`;
  const sendCopy = async ({ to, subject, text, id }: Mail, signal: AbortSignal): Promise<MailOutcome> => {
    const transport = createTransport({
      url: smtpUrl,
      requireTLS: isRemote(runtime),
      connectionTimeout: phaseMs,
      greetingTimeout: phaseMs,
      socketTimeout: phaseMs,
      dnsTimeout: phaseMs,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    let isGiven = false;
    transport.use('stream', (mail, done) => {
      // It is read once the server has asked for the mail, and the final dot follows its end.
      mail.message.processFunc((source) => source.once('end', () => (isGiven = true)));
      done();
    });
    try {
      // An address object: a string is parsed as a list, and a comma in it would make two recipients.
      await transport.sendMail({
        from,
        to: { name: '', address: to },
        subject,
        text,
        messageId: `<${id}@${host}>`,
        headers: { 'Auto-Submitted': 'auto-generated' },
        signal,
      });
      return 'sent';
    } catch (error) {
      const answer = answerOf(error);
      if (answer && isRecipientRefused(answer)) return 'refused';
      if (answer) throw new MailServerError(answer, error);
      if (isGiven) return 'unanswered';
      throw error;
    }
  };
  const sendOnceOrTwice = async (mail: Mail, signal: AbortSignal): Promise<MailOutcome> => {
    let outcome: MailOutcome | undefined = await sendCopy(mail, signal);
    if (outcome !== 'unanswered') return outcome;
    // The server may have stopped, and be starting again.
    do {
      outcome = await sendCopy(mail, signal).catch(() => undefined);
      if (!outcome) await delay(AGAIN_MS, undefined, { signal }).catch(() => undefined);
    } while (!outcome && !signal.aborted);
    return outcome ?? 'unanswered';
  };
  return {
    send: async (mail, stop) => await withLinkedAbort([stop], (signal) => sendOnceOrTwice(mail, signal), deadlineMs),
  };
}

/**
 * What the server answered to the sender, the recipient or the message, without its text, which can quote the
 * recipient.
 */
type Answer = { readonly command: string; readonly code: number; readonly status: string | undefined };

const AnsweredError = z.looseObject({
  code: z.enum(['EENVELOPE', 'EMESSAGE']),
  command: z.string(),
  responseCode: z.number(),
  response: z.string(),
});

/** @returns undefined when the error is none: it is about the connection, TLS or the login */
function answerOf(error: unknown): Answer | undefined {
  const { success, data } = AnsweredError.safeParse(error);
  if (!success) return undefined;
  const { command, responseCode: code, response } = data;
  return { command, code, status: /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})(?!\S)/.exec(response)?.[1] };
}

const isRecipientRefused = ({ command, code, status }: Answer): boolean =>
  command === 'RCPT TO' &&
  (status === undefined ? MAILBOX_REFUSED_CODES.has(code) : code >= 500 && MAILBOX_REFUSED.test(status));

/** The server refuses our sender, our account or the message, or it refuses for now. Its `code` is what it answered. */
class MailServerError extends Error {
  readonly code: string;

  constructor({ code, status }: Answer, cause: unknown) {
    super('The mail server refused.', { cause });
    this.name = 'MailServerError';
    this.code = ['SMTP', code, status].filter((part) => part !== undefined).join('_');
  }
}
