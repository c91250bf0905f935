/**
 * Which URLs a subscription may have (contract §11), judged by their text. The addresses of a host name are checked by
 * `admitsAddress`: once at creation, so that the partner gets an error early, and at each connection, for safety.
 */
import { addressKind, isAddress } from './webhook-address.ts';

export const TARGET_LENGTH_MAX = 2048;

/** `allowLocal` admits loopback, also by `http`. Only the local sandbox may set it. */
export type TargetRules = { readonly allowLocal: boolean };

const HTTP_PORT = 80;
const HTTPS_PORT = 443;
const UNPRIVILEGED_PORT_MIN = 1024;
const NAME_LENGTH_MAX = 253;
const LABEL_LENGTH_MAX = 63;

/** Names that exist only inside a network. All names below them are refused too. */
const PRIVATE_NAMES = [
  'localhost',
  'local',
  'localdomain',
  'internal',
  'intranet',
  'private',
  'lan',
  'home',
  'corp',
  'home.arpa',
  'svc',
  'onion',
  'metadata',
  'metadata.goog',
  'metadata.amazonaws.com',
  'instance-data',
  'kubernetes.default',
] as const;

/** Whether a connection to an address is allowed. */
export function admitsAddress(address: string, rules: TargetRules): boolean {
  const kind = addressKind(address);
  return kind === 'public' || (rules.allowLocal && kind === 'loopback');
}

/** The host as it is looked up: no brackets, no trailing dot, lower case. */
export const targetHost = (url: URL): string =>
  url.hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');

/** Whether the host is a loopback address or `localhost`. */
export const isLoopbackHost = (host: string): boolean => host === 'localhost' || addressKind(host) === 'loopback';

/** The first rule that a URL breaks; undefined if it breaks none. The text never contains the URL. */
export function targetFault(text: string, rules: TargetRules): string | undefined {
  // Characters, as of every text: some of them are two units of UTF-16.
  if ([...text].length > TARGET_LENGTH_MAX) return `must have at most ${TARGET_LENGTH_MAX} characters`;
  // The URL parser drops or rewrites these characters, so it would check another URL than the submitted one.
  const url = /[\s\\\p{Cc}]/u.test(text) || !/^https?:\/\/[^/]/i.test(text) ? undefined : parsed(text);
  if (url === undefined) return 'must be an absolute https URL';
  const host = targetHost(url);
  if (url.protocol !== 'https:' && !(rules.allowLocal && isLoopbackHost(host))) return 'must be an https URL';
  const authority = /^https?:\/\/([^/?#]*)/i.exec(text)?.[1] ?? '';
  if (authority.includes('@')) return 'must not carry credentials';
  if (text.includes('#')) return 'must not have a fragment';
  return portFault(url) ?? hostFault(host, rules);
}

/** After thousands of calls, `URL.canParse` of Node 20 and 22 refuses letters beyond ASCII. */
function parsed(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

function portFault(url: URL): string | undefined {
  const port = url.port === '' ? (url.protocol === 'https:' ? HTTPS_PORT : HTTP_PORT) : Number(url.port);
  return port === HTTPS_PORT || port >= UNPRIVILEGED_PORT_MIN
    ? undefined
    : `must use port ${HTTPS_PORT} or a port from ${UNPRIVILEGED_PORT_MIN} on`;
}

function hostFault(host: string, rules: TargetRules): string | undefined {
  if (rules.allowLocal && isLoopbackHost(host)) return undefined;
  if (isAddress(host)) return 'must name a host, not an address';
  if (PRIVATE_NAMES.some((name) => host === name || host.endsWith(`.${name}`)))
    return 'must name a host on the public internet';
  const labels = host.split('.');
  const isName =
    labels.length >= 2 &&
    host.length <= NAME_LENGTH_MAX &&
    labels.every((label) => label.length <= LABEL_LENGTH_MAX && /^[a-z0-9_-]+$/.test(label));
  return isName ? undefined : 'must name a host on the public internet, with its domain';
}
