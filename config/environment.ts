/**
 * The variables of the environment, and the form of each value. What several variables must fulfil together is in
 * `fault.ts`.
 */
import { createHash } from 'node:crypto';
import { isIP } from 'node:net';
import { z } from 'zod';
import { CRASH_POINTS } from '../domain/crash-point.ts';
import { blockOf, parseBlock, parseHop } from '../domain/network-address.ts';
import { RETENTION } from '../domain/retention.ts';
import { RUNTIME_ENVIRONMENTS } from '../domain/runtime.ts';
import { TASK_QUEUES } from '../domain/task-queue.ts';
import { baseUrl, connectionUrl, databaseUrl, mailServerUrl, POSTGRES, url } from './address.ts';

/** A named 256-bit key. The first of a list is the active one; the others only decrypt or verify. */
export type NamedKey = { readonly id: string; readonly key: Buffer };

/** The secret under which API keys, sessions and codes are hashed. The id is a fingerprint that does not reveal it. */
export type Pepper = { readonly id: string; readonly secret: string };

const SECRET_LENGTH_MIN = 32;
export const KEY_BYTES = 32;
const PEPPER_ID_LENGTH = 8;
/** A secret with fewer different characters or bytes is not random. */
const DISTINCT_MIN = 8;

const secret = z
  .string({ error: 'is required' })
  .min(SECRET_LENGTH_MIN, { error: `must have at least ${SECRET_LENGTH_MIN} characters` })
  .refine((value) => new Set(value).size >= DISTINCT_MIN, { error: 'is too uniform to be a secret' });

const secretList = z
  .string({ error: 'is required' })
  .transform((value) => value.split(',').map((part) => part.trim()))
  .pipe(z.array(secret).min(1));

const namedKeys = z.string({ error: 'is required' }).transform((value, context): [NamedKey, ...NamedKey[]] => {
  const [first, ...rest] = value.split(',').map((part) => {
    const [id = '', encoded = ''] = part.trim().split(':');
    const key = Buffer.from(encoded, 'base64');
    if (!/^[A-Za-z0-9_-]{1,32}$/.test(id) || key.length !== KEY_BYTES) {
      context.addIssue({
        code: 'custom',
        message: `must be a comma-separated list of <id>:<base64 of ${KEY_BYTES} bytes>`,
      });
    } else if (new Set(key).size < DISTINCT_MIN) {
      context.addIssue({ code: 'custom', message: 'is too uniform to be a secret' });
    }
    return { id, key };
  });
  if (first && hasTwins([first, ...rest])) context.addIssue({ code: 'custom', message: 'has two keys with one id' });
  return first ? [first, ...rest] : z.NEVER;
});

const peppers = secretList.transform((secrets, context): [Pepper, ...Pepper[]] => {
  const [first, ...rest] = secrets.map((value) => ({ id: pepperId(value), secret: value }));
  if (first && hasTwins([first, ...rest])) context.addIssue({ code: 'custom', message: 'has the same pepper twice' });
  return first ? [first, ...rest] : z.NEVER;
});

const pepperId = (pepper: string): string =>
  createHash('sha256').update(`pepper-id\0${pepper}`).digest('hex').slice(0, PEPPER_ID_LENGTH);

const hasTwins = (keys: readonly { readonly id: string }[]): boolean =>
  new Set(keys.map(({ id }) => id)).size < keys.length;

const whole = (min: number, max: number, what: string) => {
  const rule = { error: `${what} from ${min} to ${max}` };
  return z
    .string()
    .regex(/^\d{1,15}$/, rule)
    .transform(Number)
    .pipe(z.number().min(min, rule).max(max, rule));
};
const wholeNumber = (min: number, max: number) => whole(min, max, 'must be a whole number');
const port = (max = 65_535) => whole(0, max, 'must be a port number');
const listenHost = z
  .string()
  .refine((host) => isIP(host) !== 0 || /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(host), {
    error: 'must be an IP address, without brackets, or the name of a host',
  });
const crashAt = z.string().transform((value, context) => {
  const [, name, nth = '1'] = /^(.*?)(?::([1-9]\d*))?$/.exec(value) ?? [];
  const point = CRASH_POINTS.find((known) => known === name);
  if (point !== undefined) return { point, nth: Number(nth) };
  context.addIssue({ code: 'custom', message: 'must be a point of domain/crash-point.ts, and :<n> for its nth pass' });
  return z.NEVER;
});
/** A port belongs to one connection of a proxy, and is left out. */
const addressBlocks = z.string().transform((value, context) =>
  (value.trim() === 'none' ? [] : value.split(',')).flatMap((part) => {
    const hop = parseHop(part.trim());
    const block = hop ? blockOf(hop) : parseBlock(part.trim());
    if (!block)
      context.addIssue({
        code: 'custom',
        message: 'must be a comma-separated list of addresses and CIDR blocks, or none',
      });
    return block ? [block] : [];
  }),
);
/** As a browser sends them. `null` and `*` are no origins: any page could have them. */
const origins = z.string().transform((value, context) =>
  value.split(',').map((part) => {
    const origin = part.trim();
    const isOrigin = /^https?:[^*]*$/.test(origin) && URL.canParse(origin) && new URL(origin).origin === origin;
    if (!isOrigin)
      context.addIssue({
        code: 'custom',
        message: 'must be a comma-separated list of origins such as https://app.example',
      });
    return origin;
  }),
);
/** The exporter leaves out a header without `=`, and its process ends at a value that it cannot decode. */
const headers = z.string().refine((list) => list.split(',').every((part) => part.trim() === '' || isHeader(part)), {
  error: 'must be a comma-separated list of <name>=<value>, with values encoded as in a URL',
});
function isHeader(part: string): boolean {
  const [, value] = /^\s*[\w!#$%&'*+.^`|~-]+\s*=(.*)$/.exec(part) ?? [];
  try {
    return value !== undefined && /^[\x20-\x7e]*$/.test(decodeURIComponent(value.trim()));
  } catch {
    return false;
  }
}
const levelNames = z
  .string()
  .transform((value) => value.split(',').map((part) => part.trim()))
  .pipe(z.array(z.string().regex(/^[\w .-]{1,100}$/, { error: 'must be a comma-separated list of level names' })));
const taskQueues = z
  .string()
  .transform((value) => [...new Set(value.split(',').map((part) => part.trim()))])
  .pipe(z.array(z.enum(TASK_QUEUES, { error: `must be a list of ${TASK_QUEUES.join(' and ')}` })));
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'silent'] as const;

/** The descriptions are the table of docs/configuration.md. */
export const Environment = z.object({
  RUNTIME_ENVIRONMENT: z
    .enum(RUNTIME_ENVIRONMENTS, { error: `must be one of ${RUNTIME_ENVIRONMENTS.join(', ')}; there is no default` })
    .describe('`local-sandbox`, `remote-sandbox` or `production`. `npm start` sets the first.'),
  HOST: listenHost.default('127.0.0.1').describe('The address that the API and the metrics listen on.'),
  PORT: port().default(3000).describe('The port of the API.'),
  METRICS_PORT: port(65_534)
    .optional()
    .describe("The port of the API's metrics; the worker's is the next one. Without it there are no metrics."),
  PUBLIC_BASE_URL: baseUrl
    .optional()
    .describe('The address of the API as partners see it. Without it: `http://<HOST>:<PORT>`.'),
  DATABASE_URL: databaseUrl.describe('PostgreSQL, with the role of the service.'),
  MIGRATION_DATABASE_URL: connectionUrl(...POSTGRES)
    .optional()
    .describe('PostgreSQL, with the role that owns the tables. Only `npm run migrate` reads it.'),
  DATABASE_LISTEN_URL: databaseUrl
    .optional()
    .describe('Says that `DATABASE_URL` leads to a pooler of transactions: the direct address, for notifications.'),
  DATABASE_READ_URL: databaseUrl
    .optional()
    .describe('A streaming replica of `DATABASE_URL`, with the same role and database: the API reads lists from it.'),
  DATABASE_POOL_MAX: wholeNumber(2, 1_000)
    .default(20)
    .describe('How many connections a process opens to a server at most; a worker has 17 more, an API one.'),
  TLS_EXEMPT_HOSTS: z
    .string()
    .optional()
    .describe(
      'A list of hosts of PostgreSQL and Temporal that are reached without TLS, such as containers on one private network. Outside the local sandbox every other host but this machine needs `sslmode=verify-full` in its address, and `TEMPORAL_TLS`.',
    ),
  TEMPORAL_UI_URL: baseUrl
    .optional()
    .describe('Where operators reach Temporal UI. `ops show` and `npm run demo` link to it.'),
  RUNBOOK_URL: url('https', 'http')
    .refine((address) => !address.includes('#'), { error: 'must have no fragment: the links add their section' })
    .optional()
    .describe('Where operators read [operations.md](operations.md). Temporal UI and `ops show` link to it.'),
  // The values that Temporal's own configuration knows. It would read any other text as false.
  TEMPORAL_TLS: z
    .enum(['true', 'false', '1', '0'], { error: 'must be true or false' })
    .optional()
    .describe('Whether Temporal is reached by TLS.'),
  TEMPORAL_PAYLOAD_KEYS: namedKeys
    .optional()
    .describe(
      'Keys for what Temporal stores, as a list of `<id>:<base64 of 32 bytes>`. Without it nothing is encrypted there. ' +
        '`npm run codec`, which shows it, also reads [`CODEC_TOKEN`](operations.md#read-payloads-in-temporal-ui).',
    ),
  WORKER_DEPLOYMENT_NAME: z
    .string()
    .regex(/^[A-Za-z0-9][\w-]{0,63}$/, { error: 'must be a name of letters, digits, dashes and underscores' })
    .optional()
    .describe('The deployment of a worker. Without it the worker takes any work.'),
  WORKER_BUILD_ID: z
    .string()
    .regex(/^[A-Za-z0-9][\w.-]{0,63}$/, { error: 'must be an id of letters, digits, dots, dashes and underscores' })
    .optional()
    .describe('The version of a worker in its deployment. Set both or none.'),
  WORKER_QUEUES: taskQueues
    .default([...TASK_QUEUES])
    .describe('What a worker takes work from, as a list. Each queue needs workers; without it, a worker serves both.'),
  API_KEY_PEPPER: peppers.describe(
    'Hashes API keys, sessions and one-time codes: a list of texts of at least 32 characters.',
  ),
  ENCRYPTION_KEYS: namedKeys.describe(
    'Encrypt account numbers, secrets and other texts in PostgreSQL: a list of `<id>:<base64 of 32 bytes>`.',
  ),
  CERTIFICATE_SIGNING_KEY: namedKeys.describe('Ed25519 seeds that sign certificates, in the same form.'),
  CARDPROC_WEBHOOK_SECRET: secretList.describe('Verifies the events of the card processor. A list; each one verifies.'),
  BANKLEDGER_WEBHOOK_SECRET: secretList.describe('The same for the bank ledger.'),
  IDVERIFY_WEBHOOK_SECRET: secretList.describe('The same for the identity provider.'),
  IDVERIFY_BASE_URL: baseUrl
    .optional()
    .describe('The identity provider. Without it, only the local sandbox verifies, by a simulation.'),
  IDVERIFY_APP_TOKEN: secret
    .regex(/^[\x21-\x7e]*$/, { error: 'must have only visible ASCII characters, because a header carries it' })
    .optional()
    .describe('Its credential. Set all three or none.'),
  IDVERIFY_SECRET_KEY: secret.optional().describe('Signs the requests to it.'),
  IDVERIFY_LEVEL_NAMES: levelNames
    .default([])
    .describe('A list of its sets of checks that callers may choose in addition to the default ones.'),
  SMTP_URL: mailServerUrl
    .optional()
    .describe('The mail server for one-time codes. Without it, a remote runtime refuses to send one.'),
  WEBHOOK_ALLOW_LOCAL_TARGETS: z
    .stringbool({ error: 'must be true or false' })
    .default(false)
    .describe('Whether webhooks may go to this machine. For the local sandbox only.'),
  TRUSTED_PROXIES: addressBlocks
    .optional()
    .describe(
      'A list of addresses and CIDR blocks of proxies whose `X-Forwarded-For` is believed, or `none`. Required outside the local sandbox.',
    ),
  CONSUMER_ALLOWED_ORIGINS: origins.optional().describe('A list of web origins whose pages may call `/consumer/*`.'),
  RATE_LIMIT_PER_MINUTE: wholeNumber(1, 1_000_000)
    .default(1200)
    .describe(
      'What an organization of the tier `standard` may request in a minute; `starter` a quarter, `large` five times ' +
        'as much. The budgets of addresses and sessions follow from it.',
    ),
  OUTBOX_MAX_ROWS: wholeNumber(1, 10_000_000)
    .default(200_000)
    .describe('Beyond this many undispatched rows, new commands are refused.'),
  EVENT_RETENTION_DAYS: wholeNumber(RETENTION.events.daysMin, RETENTION.events.daysMax)
    .default(RETENTION.events.daysDefault)
    .describe('For how many days deliveries are kept, and at least so long events and attempts.'),
  QUOTE_RETENTION_DAYS: wholeNumber(RETENTION.quotes.daysMin, RETENTION.quotes.daysMax)
    .default(RETENTION.quotes.daysDefault)
    .describe("For how many days at least consumers' quotes are kept. A quote is valid for 30 seconds."),
  OTEL_EXPORTER_OTLP_ENDPOINT: baseUrl
    .optional()
    .describe('The collector of traces, by OTLP over HTTP. Without it there are none.'),
  OTEL_EXPORTER_OTLP_HEADERS: headers
    .optional()
    .describe('Headers for the collector of traces, as a list of `<name>=<value>` with values encoded as in a URL.'),
  OPERATOR_TOKEN: z
    .string()
    .min(SECRET_LENGTH_MIN, { error: 'must be a token of ops operator add' })
    .optional()
    .describe('Proves who runs a command of `npm run ops`.'),
  CRASH_AT: crashAt
    .optional()
    .describe('For the torture suite, in the local sandbox only: where the process ends itself.'),
  LOG_LEVEL: z
    .enum(LOG_LEVELS, { error: `must be one of ${LOG_LEVELS.join(', ')}` })
    .default('info')
    .describe(`${LOG_LEVELS.map((level) => `\`${level}\``).join(', ')}.`),
});
