/**
 * Whether PostgreSQL and Temporal are reached by TLS. Outside the local sandbox a connection that leaves the machine is
 * encrypted and the server proves its name, unless its host is named in TLS_EXEMPT_HOSTS.
 */
import type { ClientConnectConfig } from '@temporalio/envconfig';
import { isRemote, RUNTIME_ENVIRONMENTS } from '../domain/runtime.ts';
import { isLoopbackHost } from '../domain/webhook-target.ts';
import { partsOf } from './address.ts';
import { readCertificates } from './certificate.ts';
import { contentOf } from './given.ts';

type Given = Readonly<Record<string, string | undefined>>;

const DATABASE_ADDRESSES = ['DATABASE_URL', 'DATABASE_LISTEN_URL', 'DATABASE_READ_URL', 'MIGRATION_DATABASE_URL'];
/** What of an address names a file. The driver reads it for each new connection. */
const TLS_FILES = ['sslrootcert', 'sslcert', 'sslkey'] as const;
const TEMPORAL_ADDRESS = 'localhost:7233';

/** The faults in the address of each database. */
export const databaseTlsFaults = (given: Given): string[] =>
  DATABASE_ADDRESSES.flatMap((name) => {
    const parts = partsOf(given[name] ?? '');
    if (parts === undefined) return [];
    const { searchParams } = parts;
    // As the driver reads it: the last of several, and its own default without one.
    const host = searchParams.getAll('host').at(-1) || parts.host || given['PGHOST'] || 'localhost';
    const isPlain = needsTls(given, host) && searchParams.getAll('sslmode').at(-1) !== 'verify-full';
    return [
      ...(isPlain ? [`${name} must have sslmode=verify-full, or its host must be named in TLS_EXEMPT_HOSTS`] : []),
      ...tlsFileFaults(searchParams).map((fault) => `${name} ${fault}`),
    ];
  });

function tlsFileFaults(searchParams: URLSearchParams): string[] {
  const given = TLS_FILES.flatMap((file) => {
    const value = searchParams.getAll(file).at(-1);
    return value ? [{ file, content: contentOf(value) }] : [];
  });
  const unreadable = given.filter(({ content }) => content === undefined);
  if (unreadable.length > 0)
    return unreadable.map(({ file }) => `has ${file}, which must name a file that can be read`);
  const [ca, cert, key] = TLS_FILES.map((file) => given.find((read) => read.file === file)?.content);
  // With one alone the driver uses neither. With an empty sslrootcert it trusts every authority of the system.
  if ((cert === undefined) !== (key === undefined)) return ['must have both sslcert and sslkey, or none of them'];
  try {
    readCertificates({ ca, cert, key });
    return [];
  } catch {
    return ['has an sslrootcert, sslcert or sslkey that cannot be read, or the key of another certificate'];
  }
}

/** @param connect undefined when it could not be read, which is a fault of its own */
export function temporalTlsFaults(given: Given, connect: ClientConnectConfig | undefined): string[] {
  const { address = TEMPORAL_ADDRESS, tls } = connect?.connectionOptions ?? {};
  const host = address.replace(/:\d+$/, '');
  return connect && !tls && needsTls(given, host)
    ? ['TEMPORAL_TLS must be true, or the host of TEMPORAL_ADDRESS must be named in TLS_EXEMPT_HOSTS']
    : [];
}

function needsTls(given: Given, host: string): boolean {
  const runtime = RUNTIME_ENVIRONMENTS.find((known) => known === given['RUNTIME_ENVIRONMENT']);
  const exempt = (given['TLS_EXEMPT_HOSTS'] ?? '').split(',').map((name) => name.trim());
  return runtime !== undefined && isRemote(runtime) && !isOnThisMachine(host) && !exempt.includes(host);
}

/** A path is that of a Unix socket. */
const isOnThisMachine = (host: string): boolean =>
  host.startsWith('/') || isLoopbackHost(host.replace(/^\[(.*)\]$/, '$1'));
