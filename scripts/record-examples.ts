/**
 * `npm run record-examples`: uses every operation of the running local stack as a partner would, and stores what was
 * sent and answered as the examples of the API reference. Secrets are cut, and of a long list only the first entry is
 * kept. A test compares the file with the OpenAPI document.
 */
import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import path from 'node:path';
import { EXAMPLES_FILE, type Example } from '../api/openapi/example.ts';
import { describedOf } from '../api/pages/reference.ts';
import type { operations } from '../clients/typescript/index.ts';
import { EVENT_TYPES } from '../domain/event.ts';
import { optional, text, type ValuesOf } from '../ops/command-line/parameter.ts';
import { CommandError, command, EXIT, type Printer, runProgram, standardOutput } from '../ops/command-line/program.ts';
import { repositoryRoot } from '../process/local/place.ts';
import { nameRunningStack } from '../process/local/running-stack.ts';
import { NO_STACK } from './sandbox/command.ts';
import { cardSettlementBody, recipientBody } from './sandbox/partner.ts';

const LIST_MAX = 6;
const SHOWN_OF_SECRET = 9;
const SECRET = /^(api_key|secret|token|access_token|link_token|sdk_access_token|banklink_account_token)$/;
/** The receiver of the run. */
const OWN_ADDRESS = /^http:\/\/127\.0\.0\.1:\d+\/$/;
const SHOWN_ADDRESS = 'https://hooks.partner.example/settlements';
const WAITS_MAX = 40;
const WAIT_MS = 500;
const DAY_MS = 86_400_000;

type OperationId = keyof operations;
type Success = 200 | 201 | 202;
/** The JSON of an operation's success, as the document describes it. */
type AnswerOf<Id extends OperationId> = operations[Id] extends { responses: infer Responses }
  ? {
      [Status in keyof Responses & Success]: Responses[Status] extends { content: { 'application/json': infer Json } }
        ? Json
        : undefined;
    }[keyof Responses & Success]
  : never;
type Given = {
  readonly at?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/** What the examples show of a value. */
function shown(value: unknown): unknown {
  if (Array.isArray(value)) return (value.length > LIST_MAX ? value.slice(0, 1) : value).map(shown);
  if (typeof value === 'string' && OWN_ADDRESS.test(value)) return SHOWN_ADDRESS;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      SECRET.test(name) && typeof inner === 'string' ? `${inner.slice(0, SHOWN_OF_SECRET)}…` : shown(inner),
    ]),
  );
}

async function createRecorder(baseUrl: string) {
  const document = JSON.parse(await readFile(path.join(repositoryRoot, 'docs/openapi.json'), 'utf8'));
  const described = new Map(describedOf(document).map((operation) => [operation.operationId, operation]));
  const examples: Record<string, Example> = {};
  const credentials = { key: '', session: '' };
  /** Calls an operation; the first call is its example. */
  const call = async <Id extends OperationId>(
    operationId: Id,
    { at = {}, body, query = '', headers = {} }: Given = {},
  ): Promise<AnswerOf<Id>> => {
    const operation = described.get(operationId);
    if (!operation) throw new CommandError(EXIT.refused, `The document has no operation ${operationId}.`);
    const address = operation.path.replaceAll(/\{([a-z_]+)\}/g, (_part, name: string) => at[name] ?? '');
    const response = await fetch(`${baseUrl}${address}${query}`, {
      method: operation.method,
      headers: {
        ...(operation.path.startsWith('/consumer')
          ? { authorization: credentials.session }
          : { 'x-api-key': credentials.key }),
        'idempotency-key': randomUUID(),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const given = await response.text();
    if (!response.ok) throw new CommandError(EXIT.refused, `${operationId}: ${response.status} ${given}`);
    const answer: AnswerOf<Id> = given === '' ? undefined : JSON.parse(given);
    examples[operationId] ??= {
      ...(body === undefined ? {} : { body: shown(body) }),
      ...(query === '' ? {} : { query }),
      status: response.status,
      ...(answer === undefined ? {} : { answer: shown(answer) }),
    };
    return answer;
  };
  /** Reads until the object is as wanted. */
  const until = async <Id extends OperationId>(
    operationId: Id,
    at: Record<string, string>,
    isWanted: (answer: AnswerOf<Id>) => boolean,
  ): Promise<AnswerOf<Id>> => {
    for (let read = 0; read < WAITS_MAX; read += 1) {
      const answer = await call(operationId, { at });
      if (isWanted(answer)) return answer;
      delete examples[operationId];
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
    }
    throw new CommandError(EXIT.refused, `${operationId} did not become as wanted.`);
  };
  return { call, until, examples, credentials };
}

type Recorder = Awaited<ReturnType<typeof createRecorder>>;

async function recordPartner({ call, until, credentials }: Recorder): Promise<void> {
  const org = await call('createOrganization', {
    body: { name: 'Acme Remit Ltd', country: 'JM', contact_email: 'dev@acme.example' },
  });
  credentials.key = org.api_key;
  const at = { org_id: org.org_id };
  await call('getOrganization', { at });
  const key = await call('createApiKey', { at, body: { name: 'Payout service', scope: 'settle' } });
  await call('listApiKeys', { at });
  await call('getCaller');
  const rotated = await call('rotateApiKey', { at: { key_id: key.key_id } });
  await call('revokeApiKey', { at: { key_id: rotated.key_id } });
  const recipient = await call('createRecipient', { body: recipientBody() });
  const ofRecipient = { recipient_id: recipient.recipient_id };
  for (const name of ['getRecipient', 'listRecipients'] as const) await call(name, { at: ofRecipient });
  await call('updateRecipient', { at: ofRecipient, body: { bank_details: { branch_code: '00405' } } });
  const asked = {
    estimateSettlement: { corridor: 'US-JM', amount: '250.00', payment_method: 'card' },
    estimateFees: { corridor: 'US-JM', amount: '250.00', payment_method: 'card' },
    estimateOfframp: { corridor: 'US-JM', amount: '250.00' },
    createLinkToken: { user_reference: 'payer-7' },
    exchangePublicToken: { public_token: 'public-sandbox-checking' },
  };
  for (const name of Object.keys(asked) as (keyof typeof asked)[]) await call(name, { body: asked[name] });
  const plain = ['listPaymentMethods', 'listCorridors', 'getCapabilities', 'getLaunchGates', 'listScenarios'] as const;
  for (const name of plain) await call(name);
  for (const name of ['getCertificateKeys', 'getLiveness', 'getReadiness'] as const) await call(name);
  await recordSettlements({ call, until }, recipient.recipient_id);
  await recordVerification({ call, until }, recipient.recipient_id);
  const wallet = await call('createWallet', {
    body: {
      name: 'Payout treasury',
      signers: ['a1', 'b2'].map((part) => ({ address: `0x${part.repeat(20)}` })),
      threshold: 2,
    },
  });
  await call('getWallet', { at: { wallet_id: wallet.wallet_id } });
  await call('listWallets');
  await call('deactivateRecipient', { at: ofRecipient });
  const today = new Date().toISOString().slice(0, 10);
  await call('getUsage', { query: `?from=${today}&to=${today}` });
}

async function recordSettlements(
  { call, until }: Pick<Recorder, 'call' | 'until'>,
  recipientId: string,
): Promise<void> {
  const body = cardSettlementBody(recipientId, { reference: 'order-1042' });
  const { settlement_id } = await call('createSettlement', { body });
  const settled = await until('getSettlement', { settlement_id }, ({ status }) => status === 'settled');
  await call('getCaribbeanSettlement', { at: { settlement_id } });
  for (const name of ['listSettlements', 'listCaribbeanSettlements'] as const) await call(name);
  const at = { cert_id: settled.certificate_id ?? '' };
  await call('getCertificate', { at });
  await call('verifyCertificate', { at, query: `?settlement_id=${settlement_id}` });
  const other = { corridor: 'US-JM', amount: '250.00', recipient_id: recipientId, payout_rail: 'bank_transfer' };
  await call('createCaribbeanSettlement', { body: other });
  const manual = await call('createSettlement', {
    body: cardSettlementBody(recipientId, { card_token: 'tok_manual' }),
  });
  const waiting = { settlement_id: manual.settlement_id };
  await until('getSettlement', waiting, ({ status }) => status === 'awaiting_funds');
  await call('sendSandboxEvent', { at: waiting, body: { event: 'collection_partial', amount: '100.00' } });
  await call('advanceSettlement', { at: waiting, body: { by: 'PT5M' } });
  await call('cancelSettlement', { at: waiting });
}

async function recordVerification({ call }: Pick<Recorder, 'call' | 'until'>, recipientId: string): Promise<void> {
  const { verification_id } = await call('startVerification', { body: { recipient_id: recipientId } });
  await call('completeVerification', {
    at: { verification_id },
    body: { status: 'verified', verified_name: 'Marcia Brown' },
  });
  await call('getVerification', { at: { verification_id } });
  await call('getVerificationStatus', { at: { recipient_id: recipientId } });
  await call('createIdverifyApplicant', { body: { recipient_id: recipientId } });
}

async function recordConsumer({ call, until, credentials }: Recorder): Promise<void> {
  const email = `dana-${randomUUID().slice(0, 8)}@example.com`;
  const { challenge_id, sandbox_code: code } = await call('requestOtp', { body: { email } });
  const { access_token: session } = await call('verifyOtp', { body: { challenge_id, code } });
  credentials.session = `Bearer ${session}`;
  await call('getConsumer');
  await call('createConsumerLinkToken', { body: { user_reference: 'payer-7' } });
  await call('exchangeConsumerPublicToken', { body: { public_token: 'public-sandbox-checking' } });
  const { kind: _kind, ...person } = recipientBody();
  const { recipient_id } = await call('createConsumerRecipient', { body: person });
  await call('listConsumerRecipients');
  await call('verifyConsumerRecipient', { at: { recipient_id } });
  const quoted = { corridor: 'US-JM', amount: '100.00', payment_method: 'card' };
  const send = async (card: string) => {
    const { quote_id } = await call('createQuote', { body: quoted });
    return await call('createTransfer', { body: { quote_id, recipient_id, card_token: card } });
  };
  const { transfer_id } = await send('tok_visa');
  await until('getTransfer', { transfer_id }, ({ status }) => status === 'settled');
  await call('getTransferCertificate', { at: { transfer_id } });
  await call('cancelTransfer', { at: { transfer_id: (await send('tok_manual')).transfer_id } });
  await call('listTransfers');
  await call('logout');
}

/** The events of this run by their types, and of each other type the test event that a subscription received. */
async function recordWebhooks({ call, until, examples }: Recorder): Promise<void> {
  const received = new Map<string, unknown>();
  const receiver = createServer((request, response) => {
    let body = '';
    request.on('data', (part: Buffer) => {
      body += part.toString();
    });
    request.on('end', () => {
      const event: { readonly type: string } = JSON.parse(body);
      received.set(event.type, event);
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  try {
    const address = receiver.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    const { webhook_id } = await call('createWebhook', {
      body: { url: `http://127.0.0.1:${port}/`, event_types: ['*'], description: 'Ledger' },
    });
    const at = { webhook_id };
    for (const type of EVENT_TYPES) await call('sendTestEvent', { at, body: { event_type: type } });
    const sent = (deliveries: AnswerOf<'listWebhookDeliveries'>) =>
      deliveries.length >= EVENT_TYPES.length && deliveries.every(({ status }) => status === 'succeeded');
    const [delivery] = await until('listWebhookDeliveries', at, sent);
    await call('redeliverWebhook', { at: { ...at, delivery_id: delivery?.delivery_id ?? '' } });
    const { replay_id } = await call('replayWebhook', {
      at,
      body: { since: new Date(Date.now() - DAY_MS).toISOString() },
    });
    await until('getWebhookReplay', { ...at, replay_id }, ({ status }) => status !== 'running');
    await call('getWebhook', { at });
    await call('listWebhooks');
    await call('updateWebhook', { at, body: { description: 'Ledger of the payouts team' } });
    await call('rotateWebhookSecret', { at });
    await call('deleteWebhook', { at });
  } finally {
    receiver.close();
  }
  const events = await call('listEvents', { query: '?limit=100' });
  await call('getEvent', { at: { event_id: events[0]?.id ?? '' } });
  for (const [type, event] of [...received, ...events.map((event): [string, unknown] => [event.type, event])])
    examples[type] = { status: 204, answer: shown(event) };
}

const TAKES = { url: optional('--url <address>', 'of a local sandbox, in place of the stack of this clone', text) };

const program = command({
  name: 'record-examples',
  description: 'Uses every operation of the running stack, and stores the answers as the examples of the reference.',
  takes: TAKES,
  json: false,
  run: async ({ print }: Printer, { url }: ValuesOf<typeof TAKES>) => {
    const baseUrl = url ?? nameRunningStack()?.apiUrl;
    if (baseUrl === undefined) throw new CommandError(EXIT.unavailable, `${NO_STACK}, or give --url.`);
    const recorder = await createRecorder(baseUrl);
    await recordPartner(recorder);
    await recordConsumer(recorder);
    await recordWebhooks(recorder);
    const lines = Object.entries(recorder.examples)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, example]) => `${JSON.stringify(name)}:${JSON.stringify(example)}`);
    await writeFile(EXAMPLES_FILE, `{\n${lines.join(',\n')}\n}\n`);
    print(`recorded ${lines.length} examples`);
    return EXIT.done;
  },
});

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) => act(printer));
