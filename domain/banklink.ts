/** Simulated bank linking (contract §10): which test account a public token selects. */

/** How long a link token and its public token are valid. */
export const LINK_TOKEN_LIFETIME_MS = 30 * 60_000;

export const PUBLIC_TOKEN_PREFIX = 'public-sandbox-';
/** Of the public tokens that are issued. Any other public token names a test account. */
export const ISSUED_TOKEN_PREFIX = `${PUBLIC_TOKEN_PREFIX}link-`;
export const PUBLIC_TOKEN_PATTERN = /^public-sandbox-[A-Za-z0-9-]{1,64}$/;

type LinkedAccount = { readonly mask: string; readonly type: 'checking'; readonly name: string };

const MASK_FACTOR = 31;
const MASK_VALUES = 10_000;
const MASK_DIGITS = 4;

/** The account that a public token selects. The same token always gives the same account. */
export function linkedAccount(publicToken: string): LinkedAccount {
  let digits = 0;
  for (const character of publicToken) digits = (digits * MASK_FACTOR + (character.codePointAt(0) ?? 0)) % MASK_VALUES;
  return { mask: String(digits).padStart(MASK_DIGITS, '0'), type: 'checking', name: 'Sandbox Checking (simulation)' };
}
