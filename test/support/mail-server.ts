/** A real SMTP server on a free port that keeps the messages it accepts. */
import { once } from 'node:events';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

export type MailServer = {
  readonly port: number;
  /** The messages, each with the recipients of its envelope. */
  readonly messages: { readonly to: readonly string[]; readonly text: string; readonly encrypted: boolean }[];
  close(): Promise<void>;
};

/** @param options.onRcptTo accepts or refuses a recipient; without it, every recipient is accepted */
export async function startMailServer(
  options: Pick<SMTPServerOptions, 'onRcptTo' | 'disabledCommands'> = {},
): Promise<MailServer> {
  const messages: MailServer['messages'] = [];
  const server = new SMTPServer({
    authOptional: true,
    logger: false,
    ...options,
    onData: (stream, session, done) => {
      const parts: Buffer[] = [];
      stream.on('data', (part: Buffer) => parts.push(part));
      stream.on('end', () => {
        messages.push({
          to: session.envelope.rcptTo.map(({ address }) => address),
          text: Buffer.concat(parts).toString(),
          encrypted: session.secure,
        });
        done();
      });
    },
  });
  // In some tests the client closes the connection.
  server.on('error', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server.server, 'listening');
  const address = server.server.address();
  if (address === null || typeof address === 'string') throw new Error('the mail server has no port');
  return { port: address.port, messages, close: () => new Promise((resolve) => server.close(() => resolve())) };
}

/** The one-time code in the text of a message. */
export const codeIn = (text: string): string | undefined => /Your code is ([0-9]{6})\b/.exec(text)?.[1];
