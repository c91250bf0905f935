/**
 * The only reader of the process environment (contract §16). `loadConfig` checks all variables by one schema, lists
 * every fault at once and never prints a value. The local sandbox generates missing secrets and stores them under
 * `.local/`, so that the API and the worker have the same ones.
 */
import { createHash, randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type ClientConnectConfig, loadClientConnectConfig } from '@temporalio/envconfig';
import { z } from 'zod';
import { CRASH_POINTS, type CrashPoint } from './domain/crash-point.ts';
import { EVENT_RETENTION } from './domain/event.ts';
import { type AddressBlock, parseBlock } from './domain/network-address.ts';
import { RUNTIME_ENVIRONMENTS, type RuntimeEnvironment } from './domain/runtime.ts';

/** A named 256-bit key. The first of a list is the active one; the others only decrypt or verify. */
export type NamedKey = { readonly id: string; readonly key: Buffer };

/** The secret under which API keys, sessions and codes are hashed. The id is a fingerprint that does not reveal it. */
export type Pepper = { readonly id: string; readonly secret: string };

export type Config = Readonly<{
  runtime: RuntimeEnvironment;
  host: string;
  port: number;
  /**
   * The API's port for metrics. The worker uses the one after it, so that both can run on one machine. Undefined: no
   * metrics. 0: any free port for each process.
   */
  metricsPort: number | undefined;
  /** The API's URL as partners see it, without a trailing slash. */
  publicBaseUrl: string;
  databaseUrl: string;
  temporal: ClientConnectConfig;
  /** Where operators reach Temporal UI, without a trailing slash; undefined: nothing links to it. */
  temporalUiUrl: string | undefined;
  /** Where operators read docs/operations.md; undefined: nothing links to it. */
  runbookUrl: string | undefined;
  /** AES-256-GCM keys for the payloads that Temporal stores; undefined: not encrypted. */
  payloadKeys: readonly [NamedKey, ...NamedKey[]] | undefined;
  /** The deployment and version of this worker; undefined: it takes any work. */
  workerDeployment: { readonly deploymentName: string; readonly buildId: string } | undefined;
  /** At least one. The first hashes; all of them verify. */
  apiKeyPeppers: readonly [Pepper, ...Pepper[]];
  /** At least one; AES-256-GCM. */
  encryptionKeys: readonly [NamedKey, ...NamedKey[]];
  /** At least one; Ed25519 seeds. */
  certificateSigningKeys: readonly [NamedKey, ...NamedKey[]];
  cardprocWebhookSecrets: readonly string[];
  bankledgerWebhookSecrets: readonly string[];
  idverifyWebhookSecrets: readonly string[];
  idverify: { baseUrl: string; appToken: string; secretKey: string } | undefined;
  /** The provider's sets of checks that callers may choose, beside the default ones. */
  idverifyLevelNames: readonly string[];
  smtpUrl: string | undefined;
  webhookAllowLocalTargets: boolean;
  /** The proxies whose `X-Forwarded-For` is believed. */
  trustedProxies: readonly AddressBlock[];
  /** The web origins that may call the consumers' operations. */
  consumerAllowedOrigins: readonly string[];
  rateLimitPerMinute: number;
  /** Beyond this many undispatched rows, new commands are refused. */
  outboxMaxRows: number;
  /** For how many days events are kept, with their deliveries. */
  eventRetentionDays: number;
  logLevel: string;
  /** The collector to which traces are sent, by OTLP over HTTP; undefined: no traces. */
  otlpEndpoint: string | undefined;
  /** Proves who runs an operator's command; the service itself does not read it. */
  operatorToken: string | undefined;
  /** Where this process ends itself, at the `nth` pass. Only the torture suite sets it. */
  crashAt: { readonly point: CrashPoint; readonly nth: number } | undefined;
}>;

/** All faults of the environment, one on each line, with the variable and the rule, never the value. */
export class ConfigError extends Error {
  readonly faults: readonly string[];
  constructor(faults: readonly string[]) {
    const count = `${faults.length} fault${faults.length === 1 ? '' : 's'}`;
    super(`The configuration has ${count}:\n${faults.map((fault) => `  ${fault}`).join('\n')}`);
    this.name = 'ConfigError';
    this.faults = faults;
  }
}

const SECRET_LENGTH_MIN = 32;
const KEY_BYTES = 32;
const PEPPER_ID_LENGTH = 8;
/** A secret with fewer different characters or bytes is not random. */
const DISTINCT_MIN = 8;

const required = (rule: string) => (issue: { readonly input?: unknown }) =>
  issue.input === undefined ? 'is required' : rule;

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

const port = z.coerce.number({ error: 'must be a port number' }).int().min(0).max(65_535);
const url = (protocol: RegExp) => z.url({ protocol, error: required('must be a URL of the right kind') });
const crashAt = z.string().transform((value, context) => {
  const [, name, nth = '1'] = /^(.*?)(?::([1-9]\d*))?$/.exec(value) ?? [];
  const point = CRASH_POINTS.find((known) => known === name);
  if (point !== undefined) return { point, nth: Number(nth) };
  context.addIssue({ code: 'custom', message: 'must be a point of domain/crash-point.ts, and :<n> for its nth pass' });
  return z.NEVER;
});
const addressBlocks = z.string().transform((value, context) =>
  value.split(',').flatMap((part) => {
    const block = parseBlock(part.trim());
    if (!block)
      context.addIssue({ code: 'custom', message: 'must be a comma-separated list of addresses and CIDR blocks' });
    return block ? [block] : [];
  }),
);
/** As a browser sends them. `null` and `*` are no origins: anybody could have them. */
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
const levelNames = z
  .string()
  .transform((value) => value.split(',').map((part) => part.trim()))
  .pipe(z.array(z.string().regex(/^[\w .-]{1,100}$/, { error: 'must be a comma-separated list of level names' })));
/** The values that Temporal's own configuration knows. It would read any other text as false. */
const temporalFlag = z.enum(['true', 'false', '1', '0'], { error: 'must be true or false' }).optional();

const wholeNumber = (min: number, max: number) =>
  z.coerce.number({ error: 'must be a whole number' }).int().min(min).max(max);

/** The descriptions are the table of docs/configuration.md. */
export const Environment = z.object({
  RUNTIME_ENVIRONMENT: z
    .enum(RUNTIME_ENVIRONMENTS, { error: `must be one of ${RUNTIME_ENVIRONMENTS.join(', ')}; there is no default` })
    .describe('`local-sandbox`, `remote-sandbox` or `production`. `npm start` sets the first.'),
  HOST: z.string().default('127.0.0.1').describe('The address that the API and the metrics listen on.'),
  PORT: port.default(3000).describe('The port of the API.'),
  METRICS_PORT: port
    .max(65_534)
    .optional()
    .describe("The port of the API's metrics; the worker's is the next one. Without it there are no metrics."),
  PUBLIC_BASE_URL: url(/^https?$/)
    .optional()
    .describe('The address of the API as partners see it. Without it: `http://<HOST>:<PORT>`.'),
  DATABASE_URL: url(/^postgres(ql)?$/).describe('PostgreSQL, with the role of the service.'),
  MIGRATION_DATABASE_URL: url(/^postgres(ql)?$/)
    .optional()
    .describe('PostgreSQL, with the role that owns the tables. Only `npm run migrate` reads it.'),
  TEMPORAL_UI_URL: url(/^https?$/)
    .optional()
    .describe('Where operators reach Temporal UI. `ops show` and `npm run demo` link to it.'),
  RUNBOOK_URL: url(/^https?$/)
    .optional()
    .describe('Where operators read [operations.md](operations.md). Temporal UI and `ops show` link to it.'),
  TEMPORAL_TLS: temporalFlag.describe('Whether Temporal is reached by TLS.'),
  TEMPORAL_TLS_DISABLE_HOST_VERIFICATION: temporalFlag.describe(
    "Whether the name in Temporal's certificate is ignored.",
  ),
  TEMPORAL_PAYLOAD_KEYS: namedKeys
    .optional()
    .describe(
      'Keys for what Temporal stores, as a list of `<id>:<base64 of 32 bytes>`. Without it nothing is encrypted there.',
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
  IDVERIFY_BASE_URL: url(/^https?$/)
    .optional()
    .describe('The identity provider. Without it, only the local sandbox verifies, by a simulation.'),
  IDVERIFY_APP_TOKEN: secret.optional().describe('Its credential. Set all three or none.'),
  IDVERIFY_SECRET_KEY: secret.optional().describe('Signs the requests to it.'),
  IDVERIFY_LEVEL_NAMES: levelNames
    .default([])
    .describe('A list of its sets of checks that callers may choose in addition to the default ones.'),
  SMTP_URL: url(/^smtps?$/)
    .optional()
    .describe('The mail server for one-time codes. Without it, a remote runtime refuses to send one.'),
  WEBHOOK_ALLOW_LOCAL_TARGETS: z
    .stringbool({ error: 'must be true or false' })
    .default(false)
    .describe('Whether webhooks may go to this machine. For the local sandbox only.'),
  TRUSTED_PROXIES: addressBlocks
    .optional()
    .describe('A list of addresses and CIDR blocks of proxies whose `X-Forwarded-For` is believed.'),
  CONSUMER_ALLOWED_ORIGINS: origins.optional().describe('A list of web origins whose pages may call `/consumer/*`.'),
  RATE_LIMIT_PER_MINUTE: wholeNumber(1, 1_000_000)
    .default(1200)
    .describe('What a key may spend in a minute. The budgets of addresses and sessions follow from it.'),
  OUTBOX_MAX_ROWS: wholeNumber(1, 10_000_000)
    .default(200_000)
    .describe('Beyond this many undispatched rows, new commands are refused.'),
  EVENT_RETENTION_DAYS: wholeNumber(EVENT_RETENTION.daysMin, EVENT_RETENTION.daysMax)
    .default(EVENT_RETENTION.daysMin)
    .describe('For how many days events are kept, with their deliveries.'),
  OTEL_EXPORTER_OTLP_ENDPOINT: url(/^https?$/)
    .optional()
    .describe('The collector of traces, by OTLP over HTTP. Without it there are none.'),
  OPERATOR_TOKEN: z
    .string()
    .min(SECRET_LENGTH_MIN, { error: 'must be a token of ops operator add' })
    .optional()
    .describe('Proves who runs a command of `npm run ops`.'),
  CRASH_AT: crashAt
    .optional()
    .describe('For the torture suite, in the local sandbox only: where the process ends itself.'),
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'silent'], { error: 'must be a pino level' })
    .default('info')
    .describe('`fatal`, `error`, `warn`, `info`, `debug` or `silent`.'),
});

/** The secrets that the local sandbox generates. If all of them are set, it writes nothing. */
export const SANDBOX_SECRETS = [
  'API_KEY_PEPPER',
  'ENCRYPTION_KEYS',
  'CERTIFICATE_SIGNING_KEY',
  'CARDPROC_WEBHOOK_SECRET',
  'BANKLEDGER_WEBHOOK_SECRET',
  'IDVERIFY_WEBHOOK_SECRET',
] as const;

/**
 * Reads and checks the environment.
 *
 * @param env usually `process.env`; empty values count as unset
 * @param localDirectory where the local sandbox stores generated secrets; not used in other runtimes
 * @throws ConfigError with every fault
 */
export function loadConfig(env: NodeJS.ProcessEnv = process.env, localDirectory = '.local'): Config {
  const given = givenOf(env);
  const sandbox = given['RUNTIME_ENVIRONMENT'] === 'local-sandbox';
  const complete =
    sandbox && SANDBOX_SECRETS.some((name) => given[name] === undefined)
      ? { ...sandboxSecrets(localDirectory), ...given }
      : given;
  const parsed = Environment.safeParse(complete);
  const temporal = temporalConfig(given);
  const others = [
    ...togetherFaults(given),
    ...idverifyFaults(given),
    ...crashFaults(given),
    ...originFaults(given),
    ...sharingFaults(complete),
  ];
  if (!parsed.success || 'fault' in temporal || others.length > 0)
    throw new ConfigError([...faultsOf(parsed, temporal), ...others]);
  const value = parsed.data;
  return Object.freeze({
    runtime: value.RUNTIME_ENVIRONMENT,
    host: value.HOST,
    port: value.PORT,
    metricsPort: value.METRICS_PORT,
    publicBaseUrl: (value.PUBLIC_BASE_URL ?? `http://${value.HOST}:${value.PORT}`).replace(/\/+$/, ''),
    databaseUrl: value.DATABASE_URL,
    temporal: temporal.connect,
    temporalUiUrl: value.TEMPORAL_UI_URL?.replace(/\/+$/, ''),
    runbookUrl: value.RUNBOOK_URL,
    payloadKeys: value.TEMPORAL_PAYLOAD_KEYS,
    workerDeployment:
      value.WORKER_DEPLOYMENT_NAME !== undefined && value.WORKER_BUILD_ID !== undefined
        ? { deploymentName: value.WORKER_DEPLOYMENT_NAME, buildId: value.WORKER_BUILD_ID }
        : undefined,
    apiKeyPeppers: value.API_KEY_PEPPER,
    encryptionKeys: value.ENCRYPTION_KEYS,
    certificateSigningKeys: value.CERTIFICATE_SIGNING_KEY,
    cardprocWebhookSecrets: value.CARDPROC_WEBHOOK_SECRET,
    bankledgerWebhookSecrets: value.BANKLEDGER_WEBHOOK_SECRET,
    idverifyWebhookSecrets: value.IDVERIFY_WEBHOOK_SECRET,
    idverify:
      value.IDVERIFY_BASE_URL && value.IDVERIFY_APP_TOKEN && value.IDVERIFY_SECRET_KEY
        ? { baseUrl: value.IDVERIFY_BASE_URL, appToken: value.IDVERIFY_APP_TOKEN, secretKey: value.IDVERIFY_SECRET_KEY }
        : undefined,
    idverifyLevelNames: value.IDVERIFY_LEVEL_NAMES,
    smtpUrl: value.SMTP_URL,
    webhookAllowLocalTargets: sandbox && value.WEBHOOK_ALLOW_LOCAL_TARGETS,
    trustedProxies: value.TRUSTED_PROXIES ?? [],
    consumerAllowedOrigins: value.CONSUMER_ALLOWED_ORIGINS ?? [],
    rateLimitPerMinute: value.RATE_LIMIT_PER_MINUTE,
    outboxMaxRows: value.OUTBOX_MAX_ROWS,
    eventRetentionDays: value.EVENT_RETENTION_DAYS,
    logLevel: value.LOG_LEVEL,
    otlpEndpoint: value.OTEL_EXPORTER_OTLP_ENDPOINT?.replace(/\/+$/, ''),
    operatorToken: value.OPERATOR_TOKEN,
    crashAt: value.CRASH_AT,
  });
}

/**
 * For tools beside the service: reads only the variables for Temporal and its payload keys.
 *
 * @throws ConfigError
 */
export function loadTemporalConfig(env: NodeJS.ProcessEnv = process.env): Pick<Config, 'temporal' | 'payloadKeys'> {
  const given = givenOf(env);
  const parsed = Environment.pick({
    TEMPORAL_TLS: true,
    TEMPORAL_TLS_DISABLE_HOST_VERIFICATION: true,
    TEMPORAL_PAYLOAD_KEYS: true,
  }).safeParse(given);
  const temporal = temporalConfig(given);
  if (!parsed.success || 'fault' in temporal) throw new ConfigError(faultsOf(parsed, temporal));
  return { temporal: temporal.connect, payloadKeys: parsed.data.TEMPORAL_PAYLOAD_KEYS };
}

/**
 * For the migrations: reads only the two addresses of the database, and needs no secret of the service. Only the local
 * sandbox may have one role for both, by naming one address.
 *
 * @throws ConfigError
 */
export function loadMigrationConfig(env: NodeJS.ProcessEnv = process.env): {
  readonly databaseUrl: string;
  readonly migrationUrl: string;
} {
  const parsed = Environment.pick({
    RUNTIME_ENVIRONMENT: true,
    DATABASE_URL: true,
    MIGRATION_DATABASE_URL: true,
  }).safeParse(givenOf(env));
  if (!parsed.success) throw new ConfigError(faultsOf(parsed));
  const { RUNTIME_ENVIRONMENT, DATABASE_URL, MIGRATION_DATABASE_URL } = parsed.data;
  const role = (databaseUrl: string): string => new URL(databaseUrl).username;
  const isOneRole = role(MIGRATION_DATABASE_URL ?? DATABASE_URL) === role(DATABASE_URL);
  const faults = isOneRole
    ? ['MIGRATION_DATABASE_URL must name the role that owns the tables, and DATABASE_URL another']
    : sharingFaults({ DATABASE_URL, MIGRATION_DATABASE_URL });
  if (RUNTIME_ENVIRONMENT !== 'local-sandbox' && faults.length > 0) throw new ConfigError(faults);
  return { databaseUrl: DATABASE_URL, migrationUrl: MIGRATION_DATABASE_URL ?? DATABASE_URL };
}

/** Empty values count as unset: an environment file may have blank lines for unused variables. */
const givenOf = (env: NodeJS.ProcessEnv): Record<string, string> =>
  Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined || value === '' ? [] : [[name, value]])),
  );

/** Variables that must be set together: half of them would be ignored without a word. */
const TOGETHER = [
  ['WORKER_DEPLOYMENT_NAME', 'WORKER_BUILD_ID'],
  ['IDVERIFY_BASE_URL', 'IDVERIFY_APP_TOKEN', 'IDVERIFY_SECRET_KEY'],
];

function togetherFaults(given: Readonly<Record<string, string>>): string[] {
  return TOGETHER.flatMap((names) => {
    const present = names.find((name) => given[name] !== undefined);
    if (present === undefined) return [];
    return names.filter((name) => given[name] === undefined).map((name) => `${name} is required beside ${present}`);
  });
}

/** Every secret, with the values of its list. A named key's value is its key, without its id. */
const SECRET_VALUES: Readonly<Record<string, (given: string) => readonly string[]>> = {
  DATABASE_URL: passwordsOf,
  MIGRATION_DATABASE_URL: passwordsOf,
  SMTP_URL: passwordsOf,
  API_KEY_PEPPER: valuesOf,
  ENCRYPTION_KEYS: keysOf,
  CERTIFICATE_SIGNING_KEY: keysOf,
  TEMPORAL_PAYLOAD_KEYS: keysOf,
  CARDPROC_WEBHOOK_SECRET: valuesOf,
  BANKLEDGER_WEBHOOK_SECRET: valuesOf,
  IDVERIFY_WEBHOOK_SECRET: valuesOf,
  IDVERIFY_APP_TOKEN: valuesOf,
  IDVERIFY_SECRET_KEY: valuesOf,
  OPERATOR_TOKEN: valuesOf,
};

/**
 * One value has one use: who learns a provider's secret must not be able to sign for another provider, and a key that
 * signs must not also encrypt. One line for each value that is used twice, without the value.
 */
function sharingFaults(given: Readonly<Record<string, string | undefined>>): string[] {
  const users = new Map<string, string[]>();
  for (const [name, read] of Object.entries(SECRET_VALUES))
    for (const value of new Set(read(given[name] ?? ''))) users.set(value, [...(users.get(value) ?? []), name]);
  const shared = [...users.values()].filter((names) => names.length > 1);
  const twins = ['ENCRYPTION_KEYS', 'CERTIFICATE_SIGNING_KEY', 'TEMPORAL_PAYLOAD_KEYS'].filter((name) => {
    const keys = keysOf(given[name] ?? '');
    return new Set(keys).size < keys.length;
  });
  return [
    ...new Set(shared.map(([first, ...others]) => `${first} must not have a value of ${others.join(', ')}`)),
    ...twins.map((name) => `${name} has the same key twice`),
  ];
}

/** Without the padding of base64, which is optional. */
function valuesOf(list: string): string[] {
  return list.split(',').flatMap((part) => part.trim().replace(/=+$/, '') || []);
}

function keysOf(list: string): string[] {
  return valuesOf(list).map((part) => part.slice(part.indexOf(':') + 1));
}

function passwordsOf(address: string): string[] {
  const { password = '' } = URL.canParse(address) ? new URL(address) : {};
  return password === '' ? [] : [decodeURIComponent(password).replace(/=+$/, '')];
}
/** The provider gets personal data, and its answers are believed: in a remote runtime nobody may listen or answer. */
const idverifyFaults = (given: Readonly<Record<string, string>>): string[] =>
  /^http:/i.test(String(given['IDVERIFY_BASE_URL'])) && given['RUNTIME_ENVIRONMENT'] !== 'local-sandbox'
    ? ['IDVERIFY_BASE_URL must be an https URL']
    : [];

/** A page that came without encryption may have been changed on its way, and reads the consumer's session. */
const originFaults = (given: Readonly<Record<string, string>>): string[] =>
  /(^|,)\s*http:/i.test(String(given['CONSUMER_ALLOWED_ORIGINS'])) && given['RUNTIME_ENVIRONMENT'] !== 'local-sandbox'
    ? ['CONSUMER_ALLOWED_ORIGINS must name https origins']
    : [];

/** A process that ends itself is for tests, wherever the variable came from. */
const crashFaults = (given: Readonly<Record<string, string>>): string[] =>
  'CRASH_AT' in given && given['RUNTIME_ENVIRONMENT'] !== 'local-sandbox'
    ? ['CRASH_AT is for the local sandbox only']
    : [];

/** A line for each variable and broken rule. A list that breaks a rule several times has one line for it. */
function faultsOf(parsed: z.ZodSafeParseResult<unknown>, temporal?: ReturnType<typeof temporalConfig>): string[] {
  const lines = parsed.error?.issues.map((issue) => `${String(issue.path[0])} ${issue.message}`);
  return [...new Set(lines), ...(temporal && 'fault' in temporal ? [temporal.fault] : [])];
}

/** TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS_*; profiles on disk are never read. */
function temporalConfig(
  given: Record<string, string>,
): { readonly connect: ClientConnectConfig } | { readonly fault: string } {
  try {
    return { connect: loadClientConnectConfig({ disableFile: true, overrideEnvVars: given }) };
  } catch {
    // The error's message can contain a value.
    return { fault: 'TEMPORAL_TLS_* is invalid: a file cannot be read, or one setting is given twice' };
  }
}

/**
 * The generated secrets of the local sandbox. The file is written once, and only its owner can read it. It is written
 * under another name and then linked to its own: a process that starts at the same time reads the whole file, or none.
 */
function sandboxSecrets(directory: string): Record<string, string> {
  const file = path.join(directory, 'sandbox-secrets.json');
  mkdirSync(directory, { recursive: true });
  const text = () => randomBytes(KEY_BYTES).toString('hex');
  const key = (id: string) => `${id}:${randomBytes(KEY_BYTES).toString('base64')}`;
  const fresh = {
    API_KEY_PEPPER: text(),
    ENCRYPTION_KEYS: key('sandbox-1'),
    CERTIFICATE_SIGNING_KEY: key('sandbox-1'),
    CARDPROC_WEBHOOK_SECRET: text(),
    BANKLEDGER_WEBHOOK_SECRET: text(),
    IDVERIFY_WEBHOOK_SECRET: text(),
  };
  const temporary = `${file}.${randomBytes(8).toString('hex')}`;
  try {
    writeFileSync(temporary, JSON.stringify(fresh, null, 2), { flag: 'wx', mode: 0o600 });
    linkSync(temporary, file);
    return fresh;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    return z.record(z.string(), z.string()).parse(JSON.parse(readFileSync(file, 'utf8')));
  } finally {
    rmSync(temporary, { force: true });
  }
}
