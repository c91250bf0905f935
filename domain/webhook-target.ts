/**
 * Which URLs a subscription may have (contract §11), as far as their text tells. What a name resolves to is checked by
 * whoever resolves it, by `admitsAddress`: at creation for the partner's sake, at each connection for safety.
 */
import { addressKind, isAddress } from './webhook-address.ts';

export const TARGET_LENGTH_MAX = 2048;

/** `allowLocal` admits `http` and loopback, and nothing else; only the local sandbox may say so. */
export type TargetRules = { readonly allowLocal: boolean };

const HTTPS_PORT = 443;
const UNPRIVILEGED_PORT_MIN = 1024;
const NAME_LENGTH_MAX = 253;
const LABEL_LENGTH_MAX = 63;

/** Names that mean something only inside a network, with everything below them. */
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
  'cluster.local',
  'svc',
  'onion',
  'metadata',
  'metadata.goog',
  'metadata.google.internal',
  'metadata.amazonaws.com',
  'instance-data',
  'instance-data.ec2.internal',
  'kubernetes.default',
] as const;

/** Whether an address may be dialled. */
export function admitsAddress(address: string, rules: TargetRules): boolean {
  const kind = addressKind(address);
  return kind === 'public' || (rules.allowLocal && kind === 'loopback');
}

/** The host as it is resolved: no brackets, no trailing dot, lower case. */
export const targetHost = (url: URL): string =>
  url.hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');

/** Whether the host is an address of this machine, or the name that every machine gives itself. */
export const isLoopbackHost = (host: string): boolean => host === 'localhost' || addressKind(host) === 'loopback';

/**
 * The rule that a URL breaks; undefined when it breaks none.
 *
 * @returns a sentence for the partner's developer, without the URL
 */
export function targetFault(text: string, rules: TargetRules): string | undefined {
  if (text.length > TARGET_LENGTH_MAX) return `must have at most ${TARGET_LENGTH_MAX} characters`;
  // The parser would drop or rewrite these; a URL is taken as it is written, or not at all.
  if (/[\s\\\p{Cc}]/u.test(text) || !/^https?:\/\/[^/]/i.test(text) || !URL.canParse(text))
    return 'must be an absolute https URL';
  const url = new URL(text);
  if (url.protocol !== 'https:' && !rules.allowLocal) return 'must be an https URL';
  const authority = /^https?:\/\/([^/?#]*)/i.exec(text)?.[1] ?? '';
  if (url.username !== '' || url.password !== '' || authority.includes('@')) return 'must not carry credentials';
  if (text.includes('#')) return 'must not have a fragment';
  return portFault(url) ?? hostFault(targetHost(url), rules);
}

function portFault(url: URL): string | undefined {
  const port = url.port === '' ? (url.protocol === 'https:' ? HTTPS_PORT : 80) : Number(url.port);
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
    labels.every((label) => label !== '' && label.length <= LABEL_LENGTH_MAX && /^[a-z0-9_-]+$/.test(label)) &&
    !/^[0-9]+$/.test(labels.at(-1) ?? '');
  return isName ? undefined : 'must name a host on the public internet, with its domain';
}
