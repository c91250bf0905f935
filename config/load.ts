/**
 * The only reader of the process environment (contract §16). `loadConfig` checks all variables by one schema, lists
 * every fault at once and never prints a value.
 */
import { isIPv6 } from 'node:net';
import type { ClientConnectConfig } from '@temporalio/envconfig';
import type { CrashPoint } from '../domain/crash-point.ts';
import type { AddressBlock } from '../domain/network-address.ts';
import type { RetentionDays } from '../domain/retention.ts';
import type { RuntimeEnvironment } from '../domain/runtime.ts';
import type { TaskQueue } from '../domain/task-queue.ts';
import { Environment, type NamedKey, type Pepper } from './environment.ts';
import { ConfigError, combinedFaults, faultsOf, sharingFaults } from './fault.ts';
import { readGiven } from './given.ts';
import { SANDBOX_SECRETS, sandboxSecrets } from './sandbox-secret.ts';
import { temporalConfig } from './temporal.ts';
import { databaseTlsFaults, temporalTlsFaults } from './transport.ts';

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
  /** For the connections that listen. */
  databaseListenUrl: string;
  /** `databaseUrl` leads to a pooler of transactions. */
  databaseIsPooled: boolean;
  databasePoolMax: number;
  /** Of a replica that answers lists. */
  databaseReadUrl: string | undefined;
  temporal: ClientConnectConfig;
  /** Where operators reach Temporal UI, without a trailing slash; undefined: nothing links to it. */
  temporalUiUrl: string | undefined;
  /** Where operators read docs/operations.md; undefined: nothing links to it. */
  runbookUrl: string | undefined;
  /** AES-256-GCM keys for the payloads that Temporal stores; undefined: not encrypted. */
  payloadKeys: readonly [NamedKey, ...NamedKey[]] | undefined;
  /** The deployment and version of this worker; undefined: it takes any work. */
  workerDeployment: { readonly deploymentName: string; readonly buildId: string } | undefined;
  /** What this worker takes work from. */
  workerQueues: readonly TaskQueue[];
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
  /** The provider's sets of checks that callers may choose in addition to the default ones. */
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
  retentionDays: RetentionDays;
  logLevel: string;
  /** The collector to which traces are sent, by OTLP over HTTP, and the headers for it; undefined: no traces. */
  otlp: { readonly endpoint: string; readonly headers: string | undefined } | undefined;
  /** Proves who runs an operator's command; the service itself does not read it. */
  operatorToken: string | undefined;
  /** Where this process ends itself, at the `nth` pass. Only the torture suite sets it. */
  crashAt: { readonly point: CrashPoint; readonly nth: number } | undefined;
}>;

const WILDCARDS: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/** Where a process that listens on this address is reached on its machine, also if it listens on every interface. */
export function localUrl(host: string, port: number): string {
  const address = WILDCARDS[host] ?? host;
  return `http://${isIPv6(address) ? `[${address}]` : address}:${port}`;
}

/**
 * Reads and checks the environment.
 *
 * @param env usually `process.env`; empty values count as unset
 * @param localDirectory where the local sandbox stores generated secrets; not used in other runtimes
 * @throws ConfigError with every fault
 */
export function loadConfig(env: NodeJS.ProcessEnv = process.env, localDirectory = '.local'): Config {
  const { given, faults: givenFaults } = readGiven(env);
  const sandbox = given['RUNTIME_ENVIRONMENT'] === 'local-sandbox';
  const complete =
    sandbox && SANDBOX_SECRETS.some((name) => given[name] === undefined)
      ? { ...sandboxSecrets(localDirectory), ...given }
      : given;
  const parsed = Environment.safeParse(complete);
  const temporal = temporalConfig(given);
  const combined = [
    ...combinedFaults(given, complete),
    ...databaseTlsFaults(given),
    ...temporalTlsFaults(given, temporal.connect),
  ];
  const faults = [...givenFaults, ...faultsOf(parsed), ...temporal.faults, ...combined];
  if (!parsed.success || !temporal.connect || faults.length > 0) throw new ConfigError(faults);
  const value = parsed.data;
  return Object.freeze({
    runtime: value.RUNTIME_ENVIRONMENT,
    host: value.HOST,
    port: value.PORT,
    metricsPort: value.METRICS_PORT,
    publicBaseUrl: (value.PUBLIC_BASE_URL ?? localUrl(value.HOST, value.PORT)).replace(/\/+$/, ''),
    databaseUrl: value.DATABASE_URL,
    databaseListenUrl: value.DATABASE_LISTEN_URL ?? value.DATABASE_URL,
    databaseIsPooled: value.DATABASE_LISTEN_URL !== undefined && value.DATABASE_LISTEN_URL !== value.DATABASE_URL,
    databaseReadUrl: value.DATABASE_READ_URL,
    databasePoolMax: value.DATABASE_POOL_MAX,
    temporal: temporal.connect,
    temporalUiUrl: value.TEMPORAL_UI_URL?.replace(/\/+$/, ''),
    runbookUrl: value.RUNBOOK_URL,
    payloadKeys: value.TEMPORAL_PAYLOAD_KEYS,
    workerDeployment:
      value.WORKER_DEPLOYMENT_NAME !== undefined && value.WORKER_BUILD_ID !== undefined
        ? { deploymentName: value.WORKER_DEPLOYMENT_NAME, buildId: value.WORKER_BUILD_ID }
        : undefined,
    workerQueues: value.WORKER_QUEUES,
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
    retentionDays: { events: value.EVENT_RETENTION_DAYS, quotes: value.QUOTE_RETENTION_DAYS },
    logLevel: value.LOG_LEVEL,
    otlp: value.OTEL_EXPORTER_OTLP_ENDPOINT
      ? {
          endpoint: value.OTEL_EXPORTER_OTLP_ENDPOINT.replace(/\/+$/, ''),
          headers: value.OTEL_EXPORTER_OTLP_HEADERS,
        }
      : undefined,
    operatorToken: value.OPERATOR_TOKEN,
    crashAt: value.CRASH_AT,
  });
}

/**
 * For tools outside the service: reads only the variables for Temporal and its payload keys.
 *
 * @throws ConfigError
 */
export function loadTemporalConfig(env: NodeJS.ProcessEnv = process.env): Pick<Config, 'temporal' | 'payloadKeys'> {
  const { given, faults: givenFaults } = readGiven(env);
  const parsed = Environment.pick({ TEMPORAL_TLS: true, TEMPORAL_PAYLOAD_KEYS: true }).safeParse(given);
  const temporal = temporalConfig(given);
  const faults = [...givenFaults, ...faultsOf(parsed), ...temporal.faults];
  if (!parsed.success || !temporal.connect || faults.length > 0) throw new ConfigError(faults);
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
  const { given, faults: givenFaults } = readGiven(env);
  const parsed = Environment.pick({
    RUNTIME_ENVIRONMENT: true,
    DATABASE_URL: true,
    MIGRATION_DATABASE_URL: true,
  }).safeParse(given);
  const tls = databaseTlsFaults(given);
  if (!parsed.success || givenFaults.length + tls.length > 0)
    throw new ConfigError([...givenFaults, ...faultsOf(parsed), ...tls]);
  const { RUNTIME_ENVIRONMENT, DATABASE_URL, MIGRATION_DATABASE_URL } = parsed.data;
  const role = (databaseUrl: string): string => new URL(databaseUrl).username;
  const isOneRole = role(MIGRATION_DATABASE_URL ?? DATABASE_URL) === role(DATABASE_URL);
  const faults = isOneRole
    ? ['MIGRATION_DATABASE_URL must name the role that owns the tables, and DATABASE_URL another']
    : sharingFaults({ DATABASE_URL, MIGRATION_DATABASE_URL });
  if (RUNTIME_ENVIRONMENT !== 'local-sandbox' && faults.length > 0) throw new ConfigError(faults);
  return { databaseUrl: DATABASE_URL, migrationUrl: MIGRATION_DATABASE_URL ?? DATABASE_URL };
}
