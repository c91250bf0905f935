/** How Temporal is reached: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS_*. */
import { type ClientConnectConfig, loadClientConnectConfig } from '@temporalio/envconfig';
import { readCertificates } from './certificate.ts';

type Given = Readonly<Record<string, string>>;

export type TemporalConfig = {
  /** Undefined when it could not be read. */
  readonly connect: ClientConnectConfig | undefined;
  readonly faults: readonly string[];
};

const TLS_INVALID =
  'TEMPORAL_TLS_* is invalid: a file, a certificate or a key cannot be read, or one setting is given twice';

/** Profiles on disk are never read. */
export function temporalConfig(given: Given): TemporalConfig {
  const faults = [...addressFaults(given), ...apiKeyFaults(given), ...clientCertificateFaults(given)];
  try {
    const connect = loadClientConnectConfig({ disableFile: true, overrideEnvVars: { ...given } });
    if (faults.length === 0) readTls(connect);
    return { connect, faults };
  } catch {
    // The error's message can contain a value.
    return { connect: undefined, faults: [...faults, TLS_INVALID] };
  }
}

/** As the clients of Temporal take it: 7233 is their port if there is none. */
const ADDRESS = /^(?:\[[0-9a-f:.]+\]|[^\s:/[\]]+)(?::(\d{1,5}))?$/i;
const PORT_MAX = 65_535;

function addressFaults({ TEMPORAL_ADDRESS: address = 'localhost' }: Given): string[] {
  const [found, port] = ADDRESS.exec(address) ?? [];
  return found !== undefined && Number(port ?? 1) <= PORT_MAX ? [] : ['TEMPORAL_ADDRESS must be <host>:<port>'];
}

/** The library for gRPC quotes a header that it cannot send: its sentence would bring the key into the log. */
const apiKeyFaults = ({ TEMPORAL_API_KEY: key = 'none' }: Given): string[] =>
  /^[!-~]+$/.test(key) ? [] : ['TEMPORAL_API_KEY must be one word of ASCII characters'];

/** Temporal's client ignores one without the other, and says nothing. */
function clientCertificateFaults(given: Given): string[] {
  const name = (part: string, form: string) => `TEMPORAL_TLS_CLIENT_${part}_${form}`;
  const formOf = (part: string) => ['PATH', 'DATA'].find((form) => name(part, form) in given);
  const [certificate, key] = [formOf('CERT'), formOf('KEY')];
  if (certificate && !key) return [`${name('KEY', certificate)} is required with ${name('CERT', certificate)}`];
  if (key && !certificate) return [`${name('CERT', key)} is required with ${name('KEY', key)}`];
  return [];
}

/** @throws Error when one cannot be used */
function readTls({ connectionOptions: { tls } }: ClientConnectConfig): void {
  if (typeof tls !== 'object' || tls === null) return;
  const { clientCertPair: client, serverRootCACertificate: authority } = tls;
  const text = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString();
  readCertificates({ ca: text(authority), cert: text(client?.crt), key: text(client?.key) });
}
