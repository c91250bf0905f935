/** The form of a URL in the environment. */
import { z } from 'zod';

const required = (rule: string) => (issue: { readonly input?: unknown }) =>
  issue.input === undefined ? 'is required' : rule;

export const url = (...schemes: readonly string[]) =>
  z.url({
    protocol: new RegExp(`^(${schemes.join('|')})$`),
    error: required(`must be a URL that begins with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`),
  });
/** The service appends paths to it and shows it to everybody. */
export const baseUrl = url('https', 'http').refine(
  (address) => {
    if (!URL.canParse(address)) return true;
    const { username, password, search, hash } = new URL(address);
    return [username, password, search, hash].every((part) => part === '');
  },
  { error: 'must have no user, query or fragment' },
);

/** The driver takes them from the address before those that each session has (db/database-session.ts). */
const SESSION_PARAMETERS = [
  'options',
  'query_timeout',
  'statement_timeout',
  'lock_timeout',
  'idle_in_transaction_session_timeout',
];
const parametersOf = (address: string): string[] =>
  URL.canParse(address) ? [...new URL(address).searchParams.keys()] : [];

/** What programs that connect read of an address, decoded; undefined if they cannot. */
export function partsOf(address: string) {
  if (!URL.canParse(address)) return undefined;
  const { username, password, hostname, pathname, searchParams } = new URL(address);
  try {
    for (const other of [username, pathname]) decodeURIComponent(other);
    return { host: decodeURIComponent(hostname), password: decodeURIComponent(password), searchParams };
  } catch {
    return undefined;
  }
}

export const connectionUrl = (...schemes: readonly string[]) =>
  url(...schemes).refine((address) => !URL.canParse(address) || partsOf(address) !== undefined, {
    error: 'must write a % of its user, password, host or path as %25',
  });

export const POSTGRES = ['postgresql', 'postgres'] as const;
export const databaseUrl = connectionUrl(...POSTGRES).refine(
  (address) => !parametersOf(address).some((name) => SESSION_PARAMETERS.includes(name)),
  { error: 'must not set options or timeouts: the service sets them for each session' },
);

export const mailServerUrl = connectionUrl('smtps', 'smtp')
  // Others would change how its TLS is verified.
  .refine((address) => parametersOf(address).every((name) => name === 'from'), {
    error: 'must have no parameter but from',
  })
  // Without a host the mail would go to this machine, and with no address in `from` it would have no sender.
  .refine(
    (address) => {
      if (!URL.canParse(address)) return true;
      const { hostname, searchParams } = new URL(address);
      const senders = searchParams.getAll('from');
      return hostname !== '' && senders.length <= 1 && senders.every((sender) => /[^\s@<>]@[^\s@<>]/.test(sender));
    },
    { error: 'must name a host and, in from, one address' },
  );
