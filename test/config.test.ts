import { randomBytes } from 'node:crypto';
import fs, {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { test as base, describe, expect, vi } from 'vitest';
import { ConfigError } from '../config/fault.ts';
import { loadConfig, loadMigrationConfig, loadTemporalConfig } from '../config/load.ts';
import { repositoryRoot } from '../process/local/place.ts';
import { testPrograms } from './support/program.ts';

/** The next file is written in two parts, and `run` is called between them. */
function duringNextWrite(run: () => void): void {
  const write = vi.spyOn(fs, 'writeFileSync').mockImplementationOnce((file, content, options) => {
    write.mockRestore();
    syncBuiltinESMExports();
    const whole = String(content);
    writeFileSync(file, whole.slice(0, 100), options);
    run();
    appendFileSync(file, whole.slice(100));
  });
  syncBuiltinESMExports();
}

const text = () => randomBytes(32).toString('hex');
const key = (id: string) => `${id}:${randomBytes(32).toString('base64')}`;

/** The environment that a remote runtime needs. */
const remoteEnvironment = (runtime: string, changes: Record<string, string | undefined> = {}): NodeJS.ProcessEnv => ({
  RUNTIME_ENVIRONMENT: runtime,
  DATABASE_URL: 'postgres://settlement@db.example/settlement?sslmode=verify-full',
  API_KEY_PEPPER: `${text()},${text()}`,
  ENCRYPTION_KEYS: `${key('b')},${key('a')}`,
  CERTIFICATE_SIGNING_KEY: key('a'),
  CARDPROC_WEBHOOK_SECRET: `${text()},${text()}`,
  BANKLEDGER_WEBHOOK_SECRET: text(),
  IDVERIFY_WEBHOOK_SECRET: text(),
  TRUSTED_PROXIES: 'none',
  ...changes,
});

const SANDBOX = { RUNTIME_ENVIRONMENT: 'local-sandbox', DATABASE_URL: 'postgres://127.0.0.1/settlement' };

const SECRETS = [
  'API_KEY_PEPPER',
  'ENCRYPTION_KEYS',
  'CERTIFICATE_SIGNING_KEY',
  'CARDPROC_WEBHOOK_SECRET',
  'BANKLEDGER_WEBHOOK_SECRET',
  'IDVERIFY_WEBHOOK_SECRET',
] as const;

/** A folder for each test, where the local sandbox keeps its secrets; `load` and `faultsOf` use it. */
const test = base
  .extend('directory', ({ onTestFinished }) => {
    const directory = mkdtempSync(path.join(os.tmpdir(), 'config-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    return directory;
  })
  .extend(
    'load',
    ({ directory }) =>
      (env: NodeJS.ProcessEnv) =>
        loadConfig(env, directory),
  )
  .extend('faultsOf', ({ load }) => (env: NodeJS.ProcessEnv): readonly string[] => {
    try {
      load(env);
    } catch (error) {
      if (error instanceof ConfigError) return error.faults;
      throw error;
    }
    return [];
  });

const AUTHORITY = path.join(repositoryRoot, 'test', 'fixtures', 'partner.crt.pem');
const DATABASE_TLS = 'DATABASE_URL must have sslmode=verify-full, or its host must be named in TLS_EXEMPT_HOSTS';
const TEMPORAL_TLS = 'TEMPORAL_TLS must be true, or the host of TEMPORAL_ADDRESS must be named in TLS_EXEMPT_HOSTS';
const PROXIES = 'TRUSTED_PROXIES must be a comma-separated list of addresses and CIDR blocks, or none';
const ORIGINS = 'CONSUMER_ALLOWED_ORIGINS must be a comma-separated list of origins such as https://app.example';
const TWINS = [key('a'), key('b'), key('a')].join(',');
const PEPPER = text();
const DEPLOYMENT = { WORKER_DEPLOYMENT_NAME: 'settlement' };
const bytesOf = (key: string) => key.slice(key.indexOf(':') + 1);
/** One key under two names. */
const ONE_TWICE = (() => {
  const encoded = bytesOf(key('a'));
  return `a:${encoded},b:${encoded}`;
})();
/** Texts and keys with so many different characters or bytes. */
const textOf = (different: number) => 'abcdefgh'.slice(0, different).repeat(16);
const keyOf = (different: number) =>
  `a:${Buffer.from(Array.from({ length: 32 }, (_, place) => place % different)).toString('base64')}`;

type Refused = readonly [what: string, given: Readonly<Record<string, string | undefined>>, fault: string];

/** What a remote runtime refuses, each with this one fault. */
const REFUSED: readonly Refused[] = [
  ['two encryption keys with one id', { ENCRYPTION_KEYS: TWINS }, 'ENCRYPTION_KEYS has two keys with one id'],
  ['two signing keys', { CERTIFICATE_SIGNING_KEY: TWINS }, 'CERTIFICATE_SIGNING_KEY has two keys with one id'],
  ['one encryption key under two ids', { ENCRYPTION_KEYS: ONE_TWICE }, 'ENCRYPTION_KEYS has the same key twice'],
  [
    'one signing key under two ids',
    { CERTIFICATE_SIGNING_KEY: ONE_TWICE },
    'CERTIFICATE_SIGNING_KEY has the same key twice',
  ],
  ...['', 'a b', 'a/b', 'a'.repeat(33)].map(
    (id): Refused => [
      `the id ${JSON.stringify(id)} of a key`,
      { ENCRYPTION_KEYS: `${id}:${bytesOf(key('a'))}` },
      'ENCRYPTION_KEYS must be a comma-separated list of <id>:<base64 of 32 bytes>',
    ],
  ),
  ...(
    [
      ['IDVERIFY_WEBHOOK_SECRET', textOf(7)],
      ['ENCRYPTION_KEYS', keyOf(7)],
    ] as const
  ).map(
    ([name, given]): Refused => [
      `seven different characters or bytes in ${name}`,
      { [name]: given },
      `${name} is too uniform to be a secret`,
    ],
  ),
  ['a short operator token', { OPERATOR_TOKEN: 'x'.repeat(31) }, 'OPERATOR_TOKEN must be a token of ops operator add'],
  ...['basic;drop', 'basic,', 'x'.repeat(101)].map(
    (given): Refused => [
      `IDVERIFY_LEVEL_NAMES=${given}`,
      { IDVERIFY_LEVEL_NAMES: given },
      'IDVERIFY_LEVEL_NAMES must be a comma-separated list of level names',
    ],
  ),
  ['a pepper twice', { API_KEY_PEPPER: `${PEPPER},${PEPPER}` }, 'API_KEY_PEPPER has the same pepper twice'],
  ['a build alone', { WORKER_BUILD_ID: '1' }, 'WORKER_DEPLOYMENT_NAME is required with WORKER_BUILD_ID'],
  [
    'a deployment without a build',
    { ...DEPLOYMENT, WORKER_BUILD_ID: '' },
    'WORKER_BUILD_ID is required with WORKER_DEPLOYMENT_NAME',
  ],
  [
    'a dot in the name of a deployment',
    { WORKER_DEPLOYMENT_NAME: 'settlement.eu', WORKER_BUILD_ID: '1' },
    'WORKER_DEPLOYMENT_NAME must be a name of letters, digits, dashes and underscores',
  ],
  [
    'an unknown queue',
    { WORKER_QUEUES: 'settlement,payouts' },
    'WORKER_QUEUES must be a list of settlement and webhook-delivery',
  ],
  [
    'a colon in a build',
    { ...DEPLOYMENT, WORKER_BUILD_ID: '1:2' },
    'WORKER_BUILD_ID must be an id of letters, digits, dots, dashes and underscores',
  ],
  ['a crash point', { CRASH_AT: 'settlement.accept:after_commit' }, 'CRASH_AT is for the local sandbox only'],
  [
    'an identity provider without TLS',
    { IDVERIFY_BASE_URL: 'http://idverify.example', IDVERIFY_APP_TOKEN: text(), IDVERIFY_SECRET_KEY: text() },
    'IDVERIFY_BASE_URL must be an https URL',
  ],
  ['a database without sslmode', { DATABASE_URL: 'postgres://settlement@db.example/settlement' }, DATABASE_TLS],
  ...['DATABASE_LISTEN_URL', 'DATABASE_READ_URL'].map(
    (name): Refused => [
      `${name} without sslmode`,
      { [name]: 'postgres://settlement@db.example/settlement' },
      DATABASE_TLS.replace('DATABASE_URL', name),
    ],
  ),
  ['TLS that verifies nothing', { DATABASE_URL: 'postgres://s@db.example/s?sslmode=require' }, DATABASE_TLS],
  ...(
    [
      ['DATABASE_URL', 'postgres://s:50%off@127.0.0.1/s'],
      ['DATABASE_READ_URL', 'postgres://s%ff@127.0.0.1/s'],
      ['DATABASE_LISTEN_URL', 'postgres://s@127.0.0.%/s'],
      ['MIGRATION_DATABASE_URL', 'postgres://s@127.0.0.1/s%zz'],
      ['SMTP_URL', 'smtp://mail:50%25off%@mail.example'],
    ] as const
  ).map(
    ([name, given]): Refused => [
      `a % in ${name} that encodes nothing`,
      { [name]: given },
      `${name} must write a % of its user, password, host or path as %25`,
    ],
  ),
  // They would replace the limits of each session.
  ...(
    [
      ['DATABASE_URL', 'options=-c%20search_path%3Dpublic'],
      ['DATABASE_URL', 'query_timeout=0'],
      ['DATABASE_URL', 'statement_timeout=0'],
      ['DATABASE_LISTEN_URL', 'idle_in_transaction_session_timeout=0'],
      ['DATABASE_READ_URL', 'lock_timeout=0'],
    ] as const
  ).map(
    ([name, parameter]): Refused => [
      `${parameter} in ${name}`,
      { [name]: `postgres://settlement@127.0.0.1/settlement?${parameter}` },
      `${name} must not set options or timeouts: the service sets them for each session`,
    ],
  ),
  // They would switch its TLS off.
  ...['requireTLS=false', 'ignoreTLS=true', 'tls.rejectUnauthorized=false'].map(
    (parameter): Refused => [
      `${parameter} in SMTP_URL`,
      { SMTP_URL: `smtps://mail.example?from=a@b.example&${parameter}` },
      'SMTP_URL must have no parameter but from',
    ],
  ),
  ...[
    'smtp:mail',
    'smtps:///?from=a@b.example',
    'smtps://m.example?from=none',
    'smtps://m.example?from=a@b&from=c@d',
  ].map(
    (given): Refused => [
      `SMTP_URL=${given}`,
      { SMTP_URL: given },
      'SMTP_URL must name a host and, in from, one address',
    ],
  ),
  ...['authorization: Bearer x', 'authorization=Bearer%ZZ', 'authorization=a%0Ab', 'a b=c', 'a=b,c'].map(
    (given): Refused => [
      `OTEL_EXPORTER_OTLP_HEADERS=${given}`,
      { OTEL_EXPORTER_OTLP_HEADERS: given },
      'OTEL_EXPORTER_OTLP_HEADERS must be a comma-separated list of <name>=<value>, with values encoded as in a URL',
    ],
  ),
  ...['TEMPORAL_UI_URL', 'OTEL_EXPORTER_OTLP_ENDPOINT'].flatMap((name) =>
    ['https://a.example/?b=c', 'https://u:p@a.example', 'https://a.example/#b'].map(
      (given): Refused => [`${name}=${given}`, { [name]: given }, `${name} must have no user, query or fragment`],
    ),
  ),
  [
    'an identity provider with a query, behind which the paths would be',
    { IDVERIFY_BASE_URL: 'https://a.example/?b=c', IDVERIFY_APP_TOKEN: text(), IDVERIFY_SECRET_KEY: text() },
    'IDVERIFY_BASE_URL must have no user, query or fragment',
  ],
  [
    'a token of the identity provider that no header can carry',
    { IDVERIFY_BASE_URL: 'https://a.example', IDVERIFY_APP_TOKEN: `${text()}\n`, IDVERIFY_SECRET_KEY: text() },
    'IDVERIFY_APP_TOKEN must have only visible ASCII characters, because a header carries it',
  ],
  [
    'a runbook with a fragment, to which the links add theirs',
    { RUNBOOK_URL: 'https://a.example/runbook#top' },
    'RUNBOOK_URL must have no fragment: the links add their section',
  ],
  [
    'TLS that is switched off again',
    { DATABASE_URL: 'postgres://s@db.example/s?sslmode=verify-full&sslmode=disable' },
    DATABASE_TLS,
  ],
  ...['sslrootcert', 'sslcert', 'sslkey'].map(
    (name): Refused => [
      `${name} that cannot be read`,
      { DATABASE_URL: `postgres://s@db.example/s?sslmode=verify-full&${name}=/dev/null&${name}=/nowhere/file.pem` },
      `DATABASE_URL has ${name}, which must name a file that can be read`,
    ],
  ),
  ...[
    `sslrootcert=${import.meta.filename}`,
    `sslcert=${import.meta.filename}&sslkey=${import.meta.filename}`,
    'sslrootcert=/dev/null',
  ].map(
    (given): Refused => [
      `${given} without PEM`,
      { DATABASE_URL: `postgres://s@db.example/s?sslmode=verify-full&${given}` },
      'DATABASE_URL has an sslrootcert, sslcert or sslkey that cannot be read, or the key of another certificate',
    ],
  ),
  ...['sslcert', 'sslkey'].map(
    (name): Refused => [
      `${name} alone, which would not be used`,
      { DATABASE_URL: `postgres://s@db.example/s?sslmode=verify-full&${name}=${import.meta.filename}` },
      'DATABASE_URL must have both sslcert and sslkey, or none of them',
    ],
  ),
  ['a database on a private network', { DATABASE_URL: 'postgres://s@10.0.0.7/s' }, DATABASE_TLS],
  ['another host than it seems', { DATABASE_URL: 'postgres://s@127.0.0.1/s?host=db.example' }, DATABASE_TLS],
  [
    'the last of two hosts, which the driver takes',
    { DATABASE_URL: 'postgres:///s?host=127.0.0.1&host=db.example' },
    DATABASE_TLS,
  ],
  ['the host of PGHOST', { DATABASE_URL: 'postgres:///s', PGHOST: 'db.example' }, DATABASE_TLS],
  [
    'a database beside the exempt hosts',
    { DATABASE_URL: 'postgres://s@db.example/s', TLS_EXEMPT_HOSTS: 'postgres,temporal' },
    DATABASE_TLS,
  ],
  ['Temporal without TLS', { TEMPORAL_ADDRESS: 'temporal.example:7233' }, TEMPORAL_TLS],
  ['Temporal on a private network', { TEMPORAL_ADDRESS: '10.0.0.7:7233' }, TEMPORAL_TLS],
  [
    'Temporal with TLS switched off',
    { TEMPORAL_ADDRESS: 'temporal.example:7233', TEMPORAL_TLS: 'false' },
    TEMPORAL_TLS,
  ],
  // Every link begins with it, also in the public document of the API.
  ...[
    'https://user:password@api.example',
    'https://user@api.example',
    'https://api.example/?a=b',
    'https://a.example/#b',
  ].map(
    (given): Refused => [
      `PUBLIC_BASE_URL=${given}`,
      { PUBLIC_BASE_URL: given },
      'PUBLIC_BASE_URL must have no user, query or fragment',
    ],
  ),
  ...['9464', '9463'].map(
    (metricsPort): Refused => [
      `a port of the API and METRICS_PORT=${metricsPort}, by which it or the worker has that port too`,
      { PORT: '9464', METRICS_PORT: metricsPort },
      'METRICS_PORT must be another port than PORT, and not the one before it',
    ],
  ),
  // With these, an error of Temporal's client ended the process and named no variable.
  ...['https://temporal.example:7233', 'temporal.example:grpc', 'temporal.example:65536', '::1:7233', 'a b:7233'].map(
    (given): Refused => [
      `TEMPORAL_ADDRESS=${given}`,
      { TEMPORAL_ADDRESS: given, TEMPORAL_TLS: 'true' },
      'TEMPORAL_ADDRESS must be <host>:<port>',
    ],
  ),
  [
    'a client certificate of Temporal without its key: the client would send neither',
    { TEMPORAL_TLS_CLIENT_CERT_PATH: import.meta.filename },
    'TEMPORAL_TLS_CLIENT_KEY_PATH is required with TEMPORAL_TLS_CLIENT_CERT_PATH',
  ],
  [
    'a key of Temporal without its client certificate',
    { TEMPORAL_TLS_CLIENT_KEY_DATA: 'key' },
    'TEMPORAL_TLS_CLIENT_CERT_DATA is required with TEMPORAL_TLS_CLIENT_KEY_DATA',
  ],
  ...[
    { TEMPORAL_TLS_CLIENT_CERT_DATA: 'no certificate', TEMPORAL_TLS_CLIENT_KEY_DATA: 'no key' },
    { TEMPORAL_TLS_SERVER_CA_CERT_PATH: import.meta.filename },
  ].map(
    (given): Refused => [
      `${Object.keys(given)} without PEM`,
      given,
      'TEMPORAL_TLS_* is invalid: a file, a certificate or a key cannot be read, or one setting is given twice',
    ],
  ),
  // The library for gRPC quotes a header that it cannot send, and what it says is logged.
  ...['key\n\n', '\ufeffkey', 'k\u00e9y', 'two words'].map(
    (given): Refused => [
      `TEMPORAL_API_KEY=${JSON.stringify(given)}`,
      { TEMPORAL_API_KEY: given },
      'TEMPORAL_API_KEY must be one word of ASCII characters',
    ],
  ),
  [
    'no word about proxies',
    { TRUSTED_PROXIES: undefined },
    'TRUSTED_PROXIES is required: the addresses of the proxies before the API, or none',
  ],
  // They would believe everyone, or are no list of addresses.
  ...['localhost', '10.0.0.0/33', '10.0.0.1,', '10.0.0.1,none', '0.0.0.0/0', '::/0', '10.0.0.0/8:443'].map(
    (given): Refused => [`TRUSTED_PROXIES=${given}`, { TRUSTED_PROXIES: given }, PROXIES],
  ),
  // No browser sends them as its origin, or anybody does.
  ...[
    ...['*', 'null', 'app.example', 'https://app.example/', 'https://app.example/pay', 'https://*.app.example'],
    ...['https://app.example:443', 'HTTPS://app.example', 'https://user@app.example', 'https://app.example,'],
    ...['https://app.example https://pay.example', 'ftp://app.example', 'file:///app'],
  ].map((given): Refused => [`CONSUMER_ALLOWED_ORIGINS=${given}`, { CONSUMER_ALLOWED_ORIGINS: given }, ORIGINS]),
  [
    'a page that is sent without TLS',
    { CONSUMER_ALLOWED_ORIGINS: 'https://app.example, http://localhost:5173' },
    'CONSUMER_ALLOWED_ORIGINS must name https origins',
  ],
  ...(
    [
      ['DATABASE_URL', 'a URL that begins with postgresql:// or postgres://', ['mysql://s@127.0.0.1/s']],
      ['PUBLIC_BASE_URL', 'a URL that begins with https:// or http://', ['api.example', 'ftp://api.example']],
      ['PORT', 'a port number from 0 to 65535', ['-1', '65536', ' ', '0x50', '3e3', '+80']],
      ['RATE_LIMIT_PER_MINUTE', 'a whole number from 1 to 1000000', ['0', '1000001']],
      ['OUTBOX_MAX_ROWS', 'a whole number from 1 to 10000000', ['0', '10000001']],
      ['DATABASE_POOL_MAX', 'a whole number from 2 to 1000', ['1', '1001', '2.5', 'many']],
      ['EVENT_RETENTION_DAYS', 'a whole number from 90 to 36500', ['89', '0', '-1', '90.5', '36501', 'ever']],
      ['QUOTE_RETENTION_DAYS', 'a whole number from 1 to 36500', ['0', '-1', '36501']],
      ['METRICS_PORT', 'a port number from 0 to 65534', ['65535']],
      ['LOG_LEVEL', 'one of fatal, error, warn, info, debug, silent', ['trace']],
    ] as const
  ).flatMap(([name, rule, values]) =>
    values.map((given): Refused => [`${name}=${given}`, { [name]: given }, `${name} must be ${rule}`]),
  ),
  [
    'a host that is neither an address nor a name',
    { HOST: 'not a host!' },
    'HOST must be an IP address, without brackets, or the name of a host',
  ],
  ...['true', 'false'].map(
    (given): Refused => [
      `TEMPORAL_TLS_DISABLE_HOST_VERIFICATION=${given}`,
      { TEMPORAL_TLS_DISABLE_HOST_VERIFICATION: given },
      "TEMPORAL_TLS_DISABLE_HOST_VERIFICATION does nothing: set TEMPORAL_TLS_SERVER_NAME to the certificate's name",
    ],
  ),
  ['a misspelt short name', { SMTPURL: 'x' }, 'SMTPURL is unknown: SMTP_URL is meant'],
  ['a misspelt name', { TEMPORAL_ADRESS: 'x' }, 'TEMPORAL_ADRESS is unknown: TEMPORAL_ADDRESS is meant'],
  ['a plural', { RATE_LIMITS_PER_MINUTE: 'x' }, 'RATE_LIMITS_PER_MINUTE is unknown: RATE_LIMIT_PER_MINUTE is meant'],
  ['a singular', { ENCRYPTION_KEY: 'x' }, 'ENCRYPTION_KEY is unknown: ENCRYPTION_KEYS is meant'],
  ['two wrong letters', { ENCRYPTION_KYES: 'x' }, 'ENCRYPTION_KYES is unknown: ENCRYPTION_KEYS is meant'],
  ['a misspelt file', { SMTP_URL_FILES: 'x' }, 'SMTP_URL_FILES is unknown: SMTP_URL_FILE is meant'],
];

describe('the configuration is refused', () => {
  test.for([undefined, '', 'local', 'LOCAL-SANDBOX', 'sandbox', 'prod', 'live'])(
    'the runtime environment %j: there is no default',
    (runtime, { faultsOf }) => {
      expect(faultsOf(remoteEnvironment('production', { RUNTIME_ENVIRONMENT: runtime }))).toEqual([
        'RUNTIME_ENVIRONMENT must be one of local-sandbox, remote-sandbox, production; there is no default',
      ]);
    },
  );

  test.for(['remote-sandbox', 'production'])(
    '%s without secrets, with a fault for each, and none is generated',
    (runtime, { directory, faultsOf }) => {
      expect(faultsOf({ RUNTIME_ENVIRONMENT: runtime, TRUSTED_PROXIES: 'none' })).toEqual(
        ['DATABASE_URL', ...SECRETS].map((name) => `${name} is required`),
      );
      expect(readdirSync(directory)).toEqual([]);
    },
  );

  test.for(['remote-sandbox', 'production'])('%s with weak secrets, with a fault for each', (runtime, { faultsOf }) => {
    const weak = {
      API_KEY_PEPPER: 'short',
      ENCRYPTION_KEYS: `a:${Buffer.alloc(32).toString('base64')}`,
      CERTIFICATE_SIGNING_KEY: `a:${randomBytes(16).toString('base64')}`,
      CARDPROC_WEBHOOK_SECRET: `${text()},weak`,
      BANKLEDGER_WEBHOOK_SECRET: 'a'.repeat(64),
      IDVERIFY_WEBHOOK_SECRET: `${text()},`,
    };
    const faults = faultsOf(remoteEnvironment(runtime, weak));
    expect(SECRETS.filter((name) => !faults.some((fault) => fault.startsWith(`${name} `)))).toEqual([]);
  });

  test.for([
    ['TEMPORAL_TLS', 'True'],
    ['TEMPORAL_TLS_SERVER_CA_CERT_PATH', '/nowhere/authority.pem'],
  ] as const)('%s=%s', ([name, value], { faultsOf }) => {
    expect(faultsOf(remoteEnvironment('production', { [name]: value }))).toHaveLength(1);
  });

  test.for(REFUSED)('a remote runtime does not start with %s', ([, given, fault], { faultsOf }) => {
    for (const runtime of ['remote-sandbox', 'production'])
      expect(faultsOf(remoteEnvironment(runtime, given))).toEqual([fault]);
  });

  test('a crash point in a remote runtime, also an unknown one', ({ faultsOf }) => {
    const given = remoteEnvironment('production', { CRASH_AT: 'nowhere' });
    expect(faultsOf(given)).toContain('CRASH_AT is for the local sandbox only');
  });

  test.for(['settlement.accept', 'settlement.accept:after_commit:0', 'nowhere:before_commit'])(
    'an unknown crash point: %s',
    (point, { faultsOf }) => {
      expect(faultsOf({ ...SANDBOX, CRASH_AT: point })).toEqual([
        'CRASH_AT must be a point of domain/crash-point.ts, and :<n> for its nth pass',
      ]);
    },
  );

  test.for(['remote-sandbox', 'production', 'local-sandbox'])(
    'one value for three providers, a password and two kinds of key in %s, with a fault for each and no value',
    (runtime, { faultsOf }) => {
      const [shared, password, seed] = [text(), text(), randomBytes(32).toString('base64')];
      const faults = faultsOf(
        remoteEnvironment(runtime, {
          CARDPROC_WEBHOOK_SECRET: `${text()},${shared}`,
          BANKLEDGER_WEBHOOK_SECRET: shared,
          IDVERIFY_WEBHOOK_SECRET: shared,
          DATABASE_URL: `postgres://settlement:${password}@db.example/settlement?sslmode=verify-full`,
          API_KEY_PEPPER: password,
          ENCRYPTION_KEYS: `b:${seed}`,
          CERTIFICATE_SIGNING_KEY: `${key('c')},a:${seed}`,
          TEMPORAL_PAYLOAD_KEYS: ['p2', 'p1']
            .map((id) => `${id}:${Buffer.from(shared, 'hex').toString('base64')}`)
            .join(','),
        }),
      );
      expect(faults).toEqual([
        'DATABASE_URL must not have a value of API_KEY_PEPPER',
        'ENCRYPTION_KEYS must not have a value of CERTIFICATE_SIGNING_KEY',
        'CARDPROC_WEBHOOK_SECRET must not have a value of BANKLEDGER_WEBHOOK_SECRET, IDVERIFY_WEBHOOK_SECRET',
        'TEMPORAL_PAYLOAD_KEYS has the same key twice',
      ]);
      for (const value of [shared, password, seed]) expect(faults.join()).not.toContain(value);
    },
  );

  test.for<[name: string, inSetting: (secret: string) => string]>([
    ['OPERATOR_TOKEN', (secret) => secret],
    ['SMTP_URL', (secret) => `smtps://mail:${encodeURIComponent(secret)}@mail.example`],
    ['MIGRATION_DATABASE_URL', (secret) => `postgres://owner:${encodeURIComponent(secret)}@127.0.0.1/settlement`],
    ['TEMPORAL_PAYLOAD_KEYS', (secret) => `p:${secret}`],
    ['CERTIFICATE_SIGNING_KEY', (secret) => `c:${secret}`],
    ['IDVERIFY_WEBHOOK_SECRET', (secret) => secret],
    ['IDVERIFY_APP_TOKEN', (secret) => secret],
    ['IDVERIFY_SECRET_KEY', (secret) => secret],
  ])(
    'the encryption key also in %s, with or without the padding of base64, and the value is not shown',
    ([name, inSetting], { faultsOf }) => {
      const secret = randomBytes(32).toString('base64');
      const others = {
        IDVERIFY_BASE_URL: 'https://idverify.example',
        IDVERIFY_APP_TOKEN: text(),
        IDVERIFY_SECRET_KEY: text(),
      };
      for (const runtime of ['remote-sandbox', 'production', 'local-sandbox'])
        for (const given of [secret, secret.replace(/=+$/, '')]) {
          const faults = faultsOf(
            remoteEnvironment(runtime, { ...others, ENCRYPTION_KEYS: `e:${secret}`, [name]: inSetting(given) }),
          );
          const users = faults.map((fault) => fault.split(' must not have a value of ').toSorted());
          expect(users).toEqual([['ENCRYPTION_KEYS', name].toSorted()]);
        }
    },
  );

  test('a file that cannot be read, and one beside the value itself', ({ faultsOf }) => {
    const given = { SMTP_URL_FILE: '/nowhere/smtp', API_KEY_PEPPER_FILE: '/nowhere/pepper' };
    expect(faultsOf(remoteEnvironment('production', given))).toEqual([
      'API_KEY_PEPPER and API_KEY_PEPPER_FILE are both set',
      'SMTP_URL_FILE must name a file that can be read',
    ]);
  });

  test('every invalid variable at once, without the values', ({ faultsOf }) => {
    const marker = 'do-not-print-me';
    const wrong = Object.fromEntries(
      [
        ...[...SECRETS, 'DATABASE_URL', 'PORT', 'METRICS_PORT', 'PUBLIC_BASE_URL', 'SMTP_URL', 'TRUSTED_PROXIES'],
        ...['IDVERIFY_BASE_URL', 'IDVERIFY_APP_TOKEN', 'IDVERIFY_SECRET_KEY', 'WEBHOOK_ALLOW_LOCAL_TARGETS'],
        ...['CONSUMER_ALLOWED_ORIGINS', 'RATE_LIMIT_PER_MINUTE', 'OUTBOX_MAX_ROWS', 'EVENT_RETENTION_DAYS'],
        ...['QUOTE_RETENTION_DAYS', 'LOG_LEVEL', 'TEMPORAL_TLS', 'TEMPORAL_PAYLOAD_KEYS', 'RUNTIME_ENVIRONMENT'],
      ].map((name) => [name, marker]),
    );
    const faults = faultsOf(wrong);
    expect(new Set(faults.map((fault) => fault.split(' ')[0]))).toEqual(new Set(Object.keys(wrong)));
    expect(new ConfigError(faults).message).not.toContain(marker);
    expect(String(new ConfigError(faults).stack)).not.toContain(marker);
  });

  test('by ops config check, which exits with 78 and names the fault, or says that there is none', async () => {
    const { ops } = await testPrograms();
    const check = (env: NodeJS.ProcessEnv) =>
      execa('node', [ops, 'config', 'check'], { cwd: repositoryRoot, env: { ...env }, reject: false });
    const [right, wrong] = await Promise.all([
      check(remoteEnvironment('production')),
      check(remoteEnvironment('production', { PORT: 'x' })),
    ]);
    expect(right).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('no faults') });
    expect(wrong).toMatchObject({ exitCode: 78, stderr: expect.stringContaining('PORT must be a port number') });
  });

  test.each(['api', 'worker'] as const)(
    'an invalid configuration at the start of the %s, which exits with 78 after one line of the log, without a value',
    async (program) => {
      const secret = 'not-long-enough-marker';
      const { exitCode, all } = await execa('node', [(await testPrograms())[program]], {
        cwd: repositoryRoot,
        env: {
          RUNTIME_ENVIRONMENT: 'production',
          API_KEY_PEPPER: secret,
          DATABASE_URL: 'postgres://user:marker-password@127.0.0.1:1/none',
        },
        reject: false,
        all: true,
      });
      expect(exitCode).toBe(78);
      expect(JSON.parse(all)).toMatchObject({
        msg: 'the configuration is refused',
        faults: expect.arrayContaining([
          'API_KEY_PEPPER must have at least 32 characters',
          'CERTIFICATE_SIGNING_KEY is required',
        ]),
      });
      expect(all).not.toContain(secret);
      expect(all).not.toContain('marker-password');
    },
  );
});

describe('a remote runtime', () => {
  test.for<Record<string, string>>([
    { DATABASE_URL: 'postgres://s@127.0.0.1/s', TEMPORAL_ADDRESS: '127.0.0.1:7233' },
    { DATABASE_URL: 'postgres://s@[::1]:5432/s', TEMPORAL_ADDRESS: '[::1]:7233' },
    { DATABASE_URL: 'postgres://s@localhost/s', TEMPORAL_ADDRESS: 'localhost:7233' },
    { DATABASE_URL: 'postgres:///s?host=/var/run/postgresql' },
    { DATABASE_URL: 'postgres://s@%2Fvar%2Frun%2Fpostgresql/s' },
    { DATABASE_URL: `postgres://s@db.example/s?sslmode=verify-full&sslrootcert=${AUTHORITY}` },
    { TEMPORAL_ADDRESS: 'temporal.example:7233', TEMPORAL_TLS: 'true' },
    { TEMPORAL_ADDRESS: 'temporal.example:7233', TEMPORAL_API_KEY: 'a-key-implies-tls' },
    {
      DATABASE_URL: 'postgres://s@postgres/s',
      TEMPORAL_ADDRESS: 'temporal:7233',
      TLS_EXEMPT_HOSTS: 'postgres, temporal',
    },
  ])('needs no more TLS with %j', (given, { faultsOf }) => {
    expect(faultsOf(remoteEnvironment('production', given))).toEqual([]);
  });

  test.for(['remote-sandbox', 'production'] as const)(
    '%s starts with its secrets; the first of each list is the active one',
    (runtime, { directory, load }) => {
      const env = remoteEnvironment(runtime);
      const config = load(env);
      expect(config.runtime).toBe(runtime);
      expect(config.encryptionKeys.map(({ id }) => id)).toEqual(['b', 'a']);
      expect(config.cardprocWebhookSecrets).toEqual(env['CARDPROC_WEBHOOK_SECRET']?.split(','));
      expect(config.apiKeyPeppers.map(({ secret }) => secret)).toEqual(env['API_KEY_PEPPER']?.split(','));
      for (const { id, secret } of config.apiKeyPeppers) expect(secret).not.toContain(id);
      expect(
        load({ ...env, API_KEY_PEPPER: env['API_KEY_PEPPER']?.split(',').toReversed().join(',') }).apiKeyPeppers,
      ).toEqual(config.apiKeyPeppers.toReversed());
      expect(readdirSync(directory)).toEqual([]);
    },
  );

  test.for(['remote-sandbox', 'production'])('%s never sends webhooks to local targets', (runtime, { load }) => {
    expect(load(remoteEnvironment(runtime, { WEBHOOK_ALLOW_LOCAL_TARGETS: 'true' })).webhookAllowLocalTargets).toBe(
      false,
    );
  });

  test('reads each value from the file that <NAME>_FILE names, without the end of its line', ({ directory, load }) => {
    const environment = remoteEnvironment('production', {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector.example',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20x',
    });
    const inFiles = Object.entries(environment).map(([name, value]) => {
      writeFileSync(path.join(directory, name), `${value}\n`);
      return [`${name}_FILE`, path.join(directory, name)];
    });
    expect(load(Object.fromEntries(inFiles))).toEqual(load(environment));
    const file = path.join(directory, 'token');
    for (const [content, token] of [
      [`${PEPPER}\r\n`, PEPPER],
      ['\n', undefined],
    ] as const) {
      writeFileSync(file, content);
      expect(load({ ...environment, OPERATOR_TOKEN_FILE: file }).operatorToken).toBe(token);
    }
    expect(load(environment).otlp?.headers).toBe('authorization=Bearer%20x');
  });

  test('takes a secret of eight different characters, and a proxy with or without its port', ({ load }) => {
    const given = { IDVERIFY_WEBHOOK_SECRET: textOf(8), ENCRYPTION_KEYS: keyOf(8) };
    const proxies = (list: string) => load(remoteEnvironment('production', { ...given, TRUSTED_PROXIES: list }));
    const [plain, withPorts] = [proxies('10.0.0.1, 2001:db8::1'), proxies('10.0.0.1:443, [2001:db8::1]:443')];
    expect(plain.trustedProxies).toHaveLength(2);
    expect(withPorts.trustedProxies).toEqual(plain.trustedProxies);
  });

  test('removes the slashes at the end of an address', ({ load }) => {
    const config = load(
      remoteEnvironment('production', {
        PUBLIC_BASE_URL: 'https://api.example/v//',
        TEMPORAL_UI_URL: 'https://ui.example/',
        OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector.example/otlp/',
      }),
    );
    expect([config.publicBaseUrl, config.temporalUiUrl, config.otlp?.endpoint]).toEqual([
      'https://api.example/v',
      'https://ui.example',
      'https://collector.example/otlp',
    ]);
  });

  test('has metrics on any free port while the API is on any free port', ({ load }) => {
    const { port, metricsPort } = load(remoteEnvironment('production', { PORT: '0', METRICS_PORT: '0' }));
    expect(load(remoteEnvironment('production', { PORT: '1', METRICS_PORT: '0' })).port).toBe(1);
    expect([port, metricsPort]).toEqual([0, 0]);
  });

  test('listens by the direct address, and is behind a pooler only if that is another one', ({ load }) => {
    const listening = (url?: string) => {
      const config = load(remoteEnvironment('production', { DATABASE_LISTEN_URL: url }));
      return [config.databaseIsPooled, config.databaseListenUrl];
    };
    const [own, direct] = [remoteEnvironment('production')['DATABASE_URL'], 'postgres://s@127.0.0.1/s'];
    expect([listening(), listening(own), listening(direct)]).toEqual([
      [false, own],
      [false, own],
      [true, direct],
    ]);
  });

  test('starts beside variables of other programs', ({ faultsOf }) => {
    const others = {
      PATH: '/bin',
      HOSTNAME: 'db',
      NODE_ENV: 'production',
      TEMPORAL_CLI_VERSION: '1',
      PGPORT: '1',
      OTEL_SERVICE_NAME: 'x',
    };
    expect(faultsOf(remoteEnvironment('production', others))).toEqual([]);
  });

  test('encrypts payloads and versions workers only if configured', ({ load }) => {
    expect(load(remoteEnvironment('production'))).toMatchObject({
      payloadKeys: undefined,
      workerDeployment: undefined,
    });
    const given = {
      TEMPORAL_PAYLOAD_KEYS: `${key('p2')},${key('p1')}`,
      WORKER_DEPLOYMENT_NAME: 'settlement',
      WORKER_BUILD_ID: '2026.11.21',
    };
    const { payloadKeys, workerDeployment } = load(remoteEnvironment('production', given));
    expect(payloadKeys?.map(({ id }) => id)).toEqual(['p2', 'p1']);
    expect(workerDeployment).toEqual({ deploymentName: 'settlement', buildId: '2026.11.21' });
  });

  test('has a worker serve both queues, or those that are named', ({ load }) => {
    const queuesOf = (given: Record<string, string>) => load(remoteEnvironment('production', given)).workerQueues;
    expect(queuesOf({})).toEqual(['settlement', 'webhook-delivery']);
    expect(queuesOf({ WORKER_QUEUES: ' webhook-delivery,webhook-delivery' })).toEqual(['webhook-delivery']);
  });

  test('has an identity provider with all three settings, and does not start with fewer', ({ load, faultsOf }) => {
    const idverify = {
      IDVERIFY_BASE_URL: 'https://idverify.example',
      IDVERIFY_APP_TOKEN: text(),
      IDVERIFY_SECRET_KEY: text(),
    };
    expect(load(remoteEnvironment('production', idverify)).idverify).toMatchObject({
      baseUrl: 'https://idverify.example',
    });
    expect(load(remoteEnvironment('production')).idverify).toBeUndefined();
    for (const name of Object.keys(idverify))
      expect(faultsOf(remoteEnvironment('production', { ...idverify, [name]: undefined }))).toEqual([
        expect.stringMatching(new RegExp(`^${name} is required with IDVERIFY_`)),
      ]);
  });
});

describe('the local sandbox', () => {
  test.for([
    ['127.0.0.1', 'http://127.0.0.1:3000'],
    ['0.0.0.0', 'http://127.0.0.1:3000'],
    ['::', 'http://[::1]:3000'],
    ['::1', 'http://[::1]:3000'],
    ['localhost', 'http://localhost:3000'],
  ])('with the host %s, the API is reached at %s', ([host, url], { load }) => {
    expect(load({ ...SANDBOX, HOST: host }).publicBaseUrl).toBe(url);
  });

  test('generates missing secrets, in a file for its owner only, and reads them again', ({ directory, load }) => {
    const first = load(SANDBOX);
    const [file = '', ...more] = readdirSync(directory);
    expect(more).toEqual([]);
    expect(statSync(path.join(directory, file)).mode & 0o777).toBe(0o600);
    expect(load(SANDBOX)).toEqual(first);
    expect(first.apiKeyPeppers[0].secret).not.toBe(first.cardprocWebhookSecrets[0]);
  });

  test('has its secrets on the disk before their file has its name: after a power cut it is whole, or missing', ({
    directory,
    load,
    onTestFinished,
  }) => {
    const flush = vi.spyOn(fs, 'fsyncSync');
    onTestFinished(() => void flush.mockRestore());
    const named: boolean[] = [];
    flush.mockImplementation(() => void named.push(existsSync(path.join(directory, 'sandbox-secrets.json'))));
    load(SANDBOX);
    expect(named).toEqual([false]);
  });

  test('reads its secrets without writing anything, so that a full disk stops no command', ({ directory, load }) => {
    load(SANDBOX);
    utimesSync(directory, 0, 0);
    load(SANDBOX);
    expect(statSync(directory).mtimeMs).toBe(0);
  });

  test.for(['', '{}', '{"API_KEY_PEPPER":1}', '["x'])(
    'names the file of its secrets when that was damaged: %s',
    (damaged, { directory, load }) => {
      const file = path.join(directory, 'sandbox-secrets.json');
      writeFileSync(file, damaged);
      expect(() => load(SANDBOX)).toThrow(
        `The configuration has 1 fault:\n  ${file} is damaged: put the old file back`,
      );
    },
  );

  test('has a crash point only if one is set, at its first pass by default', ({ load }) => {
    const crashAt = (given?: string) => load({ ...SANDBOX, CRASH_AT: given }).crashAt;
    expect(crashAt()).toBeUndefined();
    expect(crashAt('webhook_post:after')).toEqual({ point: 'webhook_post:after', nth: 1 });
    expect(crashAt('webhook_post:after:3')).toEqual({ point: 'webhook_post:after', nth: 3 });
  });

  test('uses a given secret instead of a generated one', ({ load }) => {
    const given = text();
    expect(load({ ...SANDBOX, API_KEY_PEPPER: given }).apiKeyPeppers.map(({ secret }) => secret)).toEqual([given]);
  });

  test('names a pepper by a fingerprint that stays, because it is stored with each key', ({ load }) => {
    const secret = '0123456789abcdef'.repeat(2);
    expect(load({ ...SANDBOX, API_KEY_PEPPER: secret }).apiKeyPeppers).toEqual([{ id: 'ad68777d', secret }]);
  });

  test('generates one set of secrets if two processes start at the same moment', ({ directory, load }) => {
    const seen: { second?: ReturnType<typeof loadConfig> } = {};
    duringNextWrite(() => {
      seen.second = load(SANDBOX);
    });
    const first = load(SANDBOX);
    expect(seen.second).toEqual(first);
    expect(readdirSync(directory)).toHaveLength(1);
    expect(JSON.parse(readFileSync(path.join(directory, 'sandbox-secrets.json'), 'utf8'))).toMatchObject({
      API_KEY_PEPPER: first.apiKeyPeppers[0].secret,
    });
  });
});

describe('the configuration of the migrations', () => {
  const owner = 'postgres://settlement@db.example/settlement?sslmode=verify-full';
  const service = 'postgres://settlement_service@db.example/settlement?sslmode=verify-full';

  test.for(['remote-sandbox', 'production'])('need two roles in %s, and no secret of the service', (runtime) => {
    const load = (urls: NodeJS.ProcessEnv) => loadMigrationConfig({ RUNTIME_ENVIRONMENT: runtime, ...urls });
    expect(load({ DATABASE_URL: service, MIGRATION_DATABASE_URL: owner })).toEqual({
      databaseUrl: service,
      migrationUrl: owner,
    });
    for (const urls of [{ DATABASE_URL: owner }, { DATABASE_URL: owner, MIGRATION_DATABASE_URL: owner }])
      expect(() => load(urls)).toThrow('MIGRATION_DATABASE_URL must name the role that owns the tables');
    const withPassword = (url: string) => url.replace('@', ':one-password@');
    expect(() => load({ DATABASE_URL: withPassword(service), MIGRATION_DATABASE_URL: withPassword(owner) })).toThrow(
      'DATABASE_URL must not have a value of MIGRATION_DATABASE_URL',
    );
  });

  test('need TLS for both addresses, as the service does', () => {
    const plain = (url: string) => url.replace('?sslmode=verify-full', '');
    const load = (env: NodeJS.ProcessEnv) =>
      loadMigrationConfig({
        RUNTIME_ENVIRONMENT: 'production',
        DATABASE_URL: service,
        MIGRATION_DATABASE_URL: plain(owner),
        ...env,
      });
    expect(() => load({})).toThrow('MIGRATION_DATABASE_URL must have sslmode=verify-full');
    expect(load({ TLS_EXEMPT_HOSTS: 'db.example' }).migrationUrl).toBe(plain(owner));
  });

  test('are refused together with a misspelt name', () => {
    const given = { RUNTIME_ENVIRONMENT: 'local-sandbox', DATABASE_URL: owner, MIGRATION_DATABASE_URLS: owner };
    expect(() => loadMigrationConfig(given)).toThrow('MIGRATION_DATABASE_URLS is unknown');
  });

  test('may have one role in the local sandbox', () => {
    expect(loadMigrationConfig({ RUNTIME_ENVIRONMENT: 'local-sandbox', DATABASE_URL: owner })).toEqual({
      databaseUrl: owner,
      migrationUrl: owner,
    });
  });
});

describe('the configuration of a tool that reads payloads', () => {
  test('needs nothing but the variables of Temporal and its keys', () => {
    const { temporal, payloadKeys } = loadTemporalConfig({
      TEMPORAL_NAMESPACE: 'own',
      TEMPORAL_PAYLOAD_KEYS: key('p'),
    });
    expect([temporal.namespace, payloadKeys?.map(({ id }) => id)]).toEqual(['own', ['p']]);
  });

  test.for<[string, string, string]>([
    ['TEMPORAL_ADRESS', 'x', 'TEMPORAL_ADRESS is unknown: TEMPORAL_ADDRESS is meant'],
    ['TEMPORAL_PAYLOAD_KEYS', 'x', 'TEMPORAL_PAYLOAD_KEYS must be a comma-separated list'],
    ['TEMPORAL_TLS_CLIENT_CERT_PATH', '/nowhere/client.pem', 'TEMPORAL_TLS_* is invalid'],
    ['TEMPORAL_API_KEY', 'key\n\n', 'TEMPORAL_API_KEY must be one word'],
  ])('is refused with %s=%s', ([name, value, fault]) => {
    expect(() => loadTemporalConfig({ [name]: value })).toThrow(fault);
  });
});
