/** A real SMTP server on a free port, which keeps what it takes. */
import { once } from 'node:events';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

export type MailServer = {
  readonly port: number;
  /** Each message as it came, with the recipients of its envelope. */
  readonly messages: { readonly to: readonly string[]; readonly text: string; readonly encrypted: boolean }[];
  close(): Promise<void>;
};

/** @param options.onRcptTo judges recipients; all of them are taken where nothing is said */
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
  // A client that hangs up is a part of some tests.
  server.on('error', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server.server, 'listening');
  const address = server.server.address();
  if (address === null || typeof address === 'string') throw new Error('the mail server has no port');
  return { port: address.port, messages, close: () => new Promise((resolve) => server.close(() => resolve())) };
}

/** The code in a message's text. */
export const codeIn = (text: string): string | undefined => /Your code is ([0-9]{6})\b/.exec(text)?.[1];
