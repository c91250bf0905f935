/** Values of persons and secrets, to search for where they must not be. */

/** Each value is valid in its field, and appears nowhere else by chance. */
export const PERSON = {
  name: 'Zenobia Quillfeather',
  email: 'zenobia.quillfeather@planted.example',
  phone: '+18765559173',
  phone_number: '+18765558264',
  account_number: 'PLANTED90817263',
  verified_name: 'Zenobia Verified Quillfeather',
  card_token: 'tok_planted_5f2c81',
} as const;

/** Secrets that an answer shows once. */
export const SHOWN_ONCE: readonly string[] = [
  ...['api_key', 'secret', 'access_token', 'sdk_access_token', 'sandbox_code', 'sandbox_public_token'],
];

/** Six digits may be part of an id, so a code counts only as a word of its own. */
export const isCode = (value: string): boolean => /^[0-9]{6}$/.test(value);

/** The names of those values that are in the text, in whatever case. */
export function foundIn(text: string, values: ReadonlyMap<string, string>): string[] {
  const folded = text.toLowerCase();
  return [...values]
    .filter(([, value]) =>
      isCode(value) ? new RegExp(`\\b${value}\\b`).test(text) : folded.includes(value.toLowerCase()),
    )
    .map(([name]) => name);
}
