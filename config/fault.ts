/** Faults of the environment: what the error lists, and the rules that several variables must fulfil together. */
import type { z } from 'zod';
import { partsOf } from './address.ts';

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

type Given = Readonly<Record<string, string>>;

/**
 * The faults of several variables together.
 *
 * @param given what the process was started with
 * @param complete the same, with the secrets that the local sandbox generates
 */
export const combinedFaults = (given: Given, complete: Given): readonly string[] => [
  ...togetherFaults(given),
  ...idverifyFaults(given),
  ...crashFaults(given),
  ...originFaults(given),
  ...proxyFaults(given),
  ...portFaults(given),
  ...sharingFaults(complete),
];

/** Variables that must be set together: half of them would be ignored without a word. */
const TOGETHER = [
  ['WORKER_DEPLOYMENT_NAME', 'WORKER_BUILD_ID'],
  ['IDVERIFY_BASE_URL', 'IDVERIFY_APP_TOKEN', 'IDVERIFY_SECRET_KEY'],
];

function togetherFaults(given: Given): string[] {
  return TOGETHER.flatMap((names) => {
    const present = names.find((name) => given[name] !== undefined);
    if (present === undefined) return [];
    return names.filter((name) => given[name] === undefined).map((name) => `${name} is required with ${present}`);
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
 * One value has one use: a person who learns a provider's secret must not be able to sign for another provider, and a
 * key that signs must not also encrypt. One line for each value that is used twice, without the value.
 */
export function sharingFaults(given: Readonly<Record<string, string | undefined>>): string[] {
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
  const password = partsOf(address)?.password;
  return password ? [password.replace(/=+$/, '')] : [];
}

/** The provider gets personal data, and its answers are believed: in a remote runtime nobody may listen or answer. */
const idverifyFaults = (given: Given): string[] =>
  /^http:/i.test(String(given['IDVERIFY_BASE_URL'])) && given['RUNTIME_ENVIRONMENT'] !== 'local-sandbox'
    ? ['IDVERIFY_BASE_URL must be an https URL']
    : [];

/** A page that was loaded without encryption may have been altered, and it can read the consumer's session. */
const originFaults = (given: Given): string[] =>
  /(^|,)\s*http:/i.test(String(given['CONSUMER_ALLOWED_ORIGINS'])) && given['RUNTIME_ENVIRONMENT'] !== 'local-sandbox'
    ? ['CONSUMER_ALLOWED_ORIGINS must name https origins']
    : [];

/** Without it all callers behind a proxy would share the proxy's budget, and nothing would say so. */
const proxyFaults = (given: Given): string[] =>
  !('TRUSTED_PROXIES' in given) && ['remote-sandbox', 'production'].includes(String(given['RUNTIME_ENVIRONMENT']))
    ? ['TRUSTED_PROXIES is required: the addresses of the proxies before the API, or none']
    : [];

/** The API would take the port from itself, or the worker, whose port is the next one, from the API. 0 is any free one. */
const portFaults = ({ PORT: port = '3000', METRICS_PORT: metricsPort }: Given): string[] =>
  ![Number(port), Number(metricsPort)].includes(0) && [0, 1].includes(Number(port) - Number(metricsPort))
    ? ['METRICS_PORT must be another port than PORT, and not the one before it']
    : [];

/** A process that ends itself is for tests, wherever the variable came from. */
const crashFaults = (given: Given): string[] =>
  'CRASH_AT' in given && given['RUNTIME_ENVIRONMENT'] !== 'local-sandbox'
    ? ['CRASH_AT is for the local sandbox only']
    : [];

/** A line for each variable and broken rule. A list that breaks a rule several times has one line for it. */
export const faultsOf = (parsed: z.ZodSafeParseResult<unknown>): readonly string[] => [
  ...new Set(parsed.error?.issues.map((issue) => `${String(issue.path[0])} ${issue.message}`)),
];
