/** Personal data as operators see it: enough to recognise the right person, too little to know them. */

const HIDDEN = '***';

/** The first letter of each word: `M*** B***`. */
export const maskName = (name: string): string =>
  name
    .split(/\s+/)
    .filter((word) => word !== '')
    .map((word) => `${[...word][0] ?? ''}${HIDDEN}`)
    .join(' ');

/** The first letter and the domain: `m***@example.com`. */
export function maskEmail(email: string): string {
  const at = email.lastIndexOf('@');
  return at < 1 ? HIDDEN : `${[...email][0] ?? ''}${HIDDEN}${email.slice(at)}`;
}

/** The last two digits. */
export const maskPhone = (phone: string): string => `${HIDDEN}${phone.slice(-2)}`;

/** Scheme and host of a subscriber's URL. The rest may carry a secret of the subscriber. */
export function maskUrl(url: string): string {
  const { origin, pathname, search } = new URL(url);
  return pathname === '/' && search === '' ? `${origin}/` : `${origin}/${HIDDEN}`;
}
