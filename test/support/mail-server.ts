/** SMTP servers on free ports: a real one that keeps the messages it accepts, and one that answers as a test says. */
import { once } from 'node:events';
import net from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

export type MailServer = {
  readonly port: number;
  /** The messages, each with the recipients of its envelope. */
  readonly messages: { readonly to: readonly string[]; readonly text: string; readonly encrypted: boolean }[];
  close(): Promise<void>;
};

export async function startMailServer(options: Pick<SMTPServerOptions, 'disabledCommands'> = {}): Promise<MailServer> {
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

export type FakeMailServer = {
  readonly port: number;
  /** How many whole messages it was given, whatever it answered. */
  readonly given: () => number;
  /** How many connections are open. */
  readonly open: () => number;
  close(): Promise<void>;
};

/** What a fake server answers, and after how long. `close`: it ends the connection. undefined: it accepts at once. */
export type FakeReply = { readonly text?: string; readonly afterMs: number } | 'close' | undefined;

/** @param replyTo answers `GREETING`, each command, and `.`, the end of a message */
export async function startFakeMailServer(replyTo: (command: string) => FakeReply): Promise<FakeMailServer> {
  const sockets = new Set<net.Socket>();
  let given = 0;
  const server = net.createServer((socket) => {
    sockets.add(socket);
    // In some tests the client closes the connection.
    socket.on('error', () => undefined);
    const answer = (command: string, accepted: string): void => {
      const reply = replyTo(command) ?? { afterMs: 0 };
      if (reply === 'close') return void socket.end();
      const { text = accepted, afterMs } = reply;
      setTimeout(() => socket.destroyed || socket.write(`${text}\r\n`), afterMs).unref();
    };
    let isMessage = false;
    let rest = '';
    socket.on('data', (bytes: Buffer) => {
      const lines = `${rest}${bytes}`.split('\r\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (line === '.') given += 1;
        else if (isMessage) continue;
        isMessage = line === 'DATA';
        answer(line, isMessage ? '354 go on' : '250 ok');
      }
    });
    answer('GREETING', '220 fake');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the mail server has no port');
  return {
    port: address.port,
    given: () => given,
    open: () => [...sockets].filter((socket) => !socket.destroyed).length,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The one-time code in the text of a message. */
export const codeIn = (text: string): string | undefined => /Your code is ([0-9]{6})\b/.exec(text)?.[1];
