/**
 * Mail by SMTP. A server that refuses the recipient is a result; every other failure is thrown, so that the activity is
 * retried. A remote runtime sends mail only over TLS.
 */
import { createTransport } from 'nodemailer';
import { isRemote, type RuntimeEnvironment } from '../../domain/runtime.ts';

/** `id` becomes the message id, so that a second copy is recognized. */
export type Mail = { readonly to: string; readonly subject: string; readonly text: string; readonly id: string };

export type Mailer = {
  /**
   * @returns `refused` when the server permanently refuses mail to this recipient
   * @throws Error when the server is not reachable or fails; the mail may be sent again
   */
  send(mail: Mail): Promise<'sent' | 'refused'>;
};

/** For each phase of the SMTP dialogue. All phases together stay below an activity's timeout. */
const PHASE_TIMEOUT_MS = 4_000;
/** SMTP replies from this code on are permanent. */
const PERMANENT_FROM = 500;
/** The codes of errors about the recipient or the message, not about the connection or the login. */
const REFUSAL_CODES = new Set(['EENVELOPE', 'EMESSAGE']);

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
        if (isRefusal(error)) return 'refused';
        throw error;
      }
    },
  };
}

const isRefusal = (error: unknown): boolean =>
  error instanceof Error &&
  'code' in error &&
  REFUSAL_CODES.has(String(error.code)) &&
  'responseCode' in error &&
  typeof error.responseCode === 'number' &&
  error.responseCode >= PERMANENT_FROM;
