/**
 * Mail by SMTP. A server that refuses the recipient is a result; every other failure is thrown, so that the activity is
 * retried: a refusal of our sender or account is a fault of the service, which an operator mends. A remote runtime sends
 * mail only over TLS.
 */
import { createTransport } from 'nodemailer';
import { z } from 'zod';
import { isRemote, type RuntimeEnvironment } from '../../domain/runtime.ts';

/** `id` becomes the message id, so that a second copy is recognized. */
export type Mail = { readonly to: string; readonly subject: string; readonly text: string; readonly id: string };

export type Mailer = {
  /**
   * @returns `refused` when the server permanently refuses mail to this recipient
   * @throws Error when the server is not reachable, fails, or refuses what is ours; the mail may be sent again
   */
  send(mail: Mail): Promise<'sent' | 'refused'>;
};

/** For each phase of the SMTP dialogue. All phases together stay below an activity's timeout. */
const PHASE_TIMEOUT_MS = 4_000;
/**
 * The answers to RCPT that are about the recipient's mailbox (RFC 3463). 5.1.7 and 5.1.8 are about the sender's, and 5.7.1,
 * for example, about what our account may send.
 */
const MAILBOX_REFUSED = /^5\.(1\.(?![78]$)|2\.)/;
/** The same for a server that gives no such status. */
const MAILBOX_REFUSED_CODES = new Set([550, 551, 553]);

export type MailerSettings = {
  readonly smtpUrl: string | undefined;
  readonly publicBaseUrl: string;
  readonly runtime: RuntimeEnvironment;
};

/**
 * The sender is the `from` parameter of the SMTP URL, or `no-reply` at the service's own host.
 *
 * @returns undefined when no server is configured
 */
export function createMailer({ smtpUrl, publicBaseUrl, runtime }: MailerSettings): Mailer | undefined {
  if (smtpUrl === undefined) return undefined;
  const host = new URL(publicBaseUrl).hostname;
  const from = new URL(smtpUrl).searchParams.get('from') ?? `no-reply@${host}`;
  const transport = createTransport({
    url: smtpUrl,
    requireTLS: isRemote(runtime),
    connectionTimeout: PHASE_TIMEOUT_MS,
    greetingTimeout: PHASE_TIMEOUT_MS,
    socketTimeout: PHASE_TIMEOUT_MS,
    dnsTimeout: PHASE_TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    send: async ({ to, subject, text, id }) => {
      try {
        // An address object: a string is parsed as a list, and a comma in it would make two recipients.
        await transport.sendMail({
          from,
          to: { name: '', address: to },
          subject,
          text,
          messageId: `<${id}@${host}>`,
          headers: { 'Auto-Submitted': 'auto-generated' },
        });
        return 'sent';
      } catch (error) {
        const answer = answerOf(error);
        if (!answer) throw error;
        if (isRecipientRefused(answer)) return 'refused';
        throw new MailServerError(answer, error);
      }
    },
  };
}

/** What the server answered to the sender, the recipient or the message, without its text, which can quote the recipient. */
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
