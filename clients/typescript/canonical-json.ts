/** Canonical JSON (RFC 8785). */

const LONE_SURROGATE = /\p{Surrogate}/u;

/** @returns undefined when the value has no canonical form */
export function canonicalJson(value: unknown): string | undefined {
  if (Array.isArray(value)) return joined(value.map(canonicalJson), '[', ']');
  if (typeof value === 'object' && value !== null) {
    // The order is that of UTF-16 code units, which is how JavaScript compares strings.
    const entries = Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1));
    return joined(
      entries.map(([name, one]) => withName(canonicalJson(name), canonicalJson(one))),
      '{',
      '}',
    );
  }
  if (typeof value === 'string' && LONE_SURROGATE.test(value)) return undefined;
  return JSON.stringify(value);
}

const withName = (name: string | undefined, value: string | undefined): string | undefined =>
  name === undefined || value === undefined ? undefined : `${name}:${value}`;

const joined = (parts: readonly (string | undefined)[], open: string, close: string): string | undefined =>
  parts.includes(undefined) ? undefined : `${open}${parts.join(',')}${close}`;
