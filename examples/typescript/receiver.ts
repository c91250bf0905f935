/**
 * A receiver of webhooks: run it with WEBHOOK_SECRETS (several with commas, while you rotate), PORT and EVENTS (a
 * folder). It stores each event before it answers, and handles what is stored afterwards. So whenever it dies, no event
 * that it has answered is lost.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import path from 'node:path';
import { WebhookVerificationError, webhooks } from '../../clients/typescript/index.ts';

const secrets = (process.env['WEBHOOK_SECRETS'] ?? '').split(',');
/** In your service, a table: the event's id is its key, beside the body and whether it is handled. */
const folder = process.env['EVENTS'] ?? 'events';
mkdirSync(folder, { recursive: true });

/** No event is larger. Anybody can send to this address: a body without a limit would fill the memory. */
const BODY_BYTES_MAX = 1_048_576;

/** The body, or undefined if it is too large. A proxy may send it in chunks, without its length. */
async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  if (Number(request.headers['content-length']) > BODY_BYTES_MAX) return undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  // Without this option, a loop that ends early destroys the request, and 413 could not be sent.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += chunk.length;
    if (size > BODY_BYTES_MAX) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Id and body together, or nothing. An event can arrive twice: then its id and its bytes are the same. */
function store(id: string, body: Buffer): void {
  const file = path.join(folder, id);
  if (existsSync(`${file}.handled`)) return;
  writeFileSync(`${file}.part`, body, { flush: true });
  renameSync(`${file}.part`, `${file}.json`);
}

/** After each answer, and when the program starts again. In a database, the work and its mark are one transaction. */
function handleStored(): void {
  for (const name of readdirSync(folder).filter((file) => file.endsWith('.json'))) {
    const file = path.join(folder, name);
    const { type, sequence } = JSON.parse(readFileSync(file, 'utf8'));
    console.log(`${type}, number ${sequence}`);
    renameSync(file, file.replace(/json$/, 'handled'));
  }
}

handleStored();
createServer(async (request, response) => {
  try {
    const body = await bodyOf(request);
    if (body === undefined) return void response.writeHead(413, { connection: 'close' }).end();
    store(webhooks.verify(body, request.headers, secrets).id, body);
    response.writeHead(204).end();
    handleStored();
  } catch (error) {
    console.log(`refused: ${error instanceof WebhookVerificationError ? error.reason : error}`);
    if (!response.headersSent) response.writeHead(error instanceof WebhookVerificationError ? 400 : 500).end();
  }
}).listen(Number(process.env['PORT'] ?? 4400), '127.0.0.1');
