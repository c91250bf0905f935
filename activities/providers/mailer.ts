/**
 * Mail by SMTP. What the server says about a recipient is data; everything else that goes wrong is thrown and repeated.
 * Remotely nothing is sent over a connection without TLS.
 */
import { createTransport } from 'nodemailer';
import { isRemote, type RuntimeEnvironment } from '../../domain/runtime.ts';

/** `id` makes the message recognizable when it comes twice. */
export type Mail = { readonly to: string; readonly subject: string; readonly text: string; readonly id: string };

export type Mailer = {
  /** `refused` when the server will not take mail for this recipient. */
  send(mail: Mail): Promise<'sent' | 'refused'>;
};

/** Each part of a dialogue; all of them stay below an activity's time. */
const PART_TIMEOUT_MS = 4_000;
const PERMANENT = 500;
/** Where the server judged the recipient or the message, and not us. */
const JUDGED = new Set(['EENVELOPE', 'EMESSAGE']);

export type MailerSettings = {
  readonly smtpUrl: string | undefined;
  readonly publicBaseUrl: string;
  readonly runtime: RuntimeEnvironment;
};

/**
 * The sender is the `from` parameter of the URL, or `no-reply` at the service's own host.
 *
 * @returns undefined where no server is configured
 */
export function createMailer({ smtpUrl, publicBaseUrl, runtime }: MailerSettings): Mailer | undefined {
  if (smtpUrl === undefined) return undefined;
  const host = new URL(publicBaseUrl).hostname;
  const from = new URL(smtpUrl).searchParams.get('from') ?? `no-reply@${host}`;
  const transport = createTransport({
    url: smtpUrl,
    requireTLS: isRemote(runtime),
    connectionTimeout: PART_TIMEOUT_MS,
    greetingTimeout: PART_TIMEOUT_MS,
    socketTimeout: PART_TIMEOUT_MS,
    dnsTimeout: PART_TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    send: async ({ to, subject, text, id }) => {
      try {
        // An address object: a text would be read as a list, in which a comma makes two recipients.
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
  JUDGED.has(String(error.code)) &&
  'responseCode' in error &&
  typeof error.responseCode === 'number' &&
  error.responseCode >= PERMANENT;
