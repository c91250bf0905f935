/** Verifies an evidence certificate offline, with nothing but its file and the published keys (contract §7). */
import { createHash, createPublicKey, type JsonWebKey, verify } from 'node:crypto';
import { canonicalJson } from './canonical-json.ts';
import type { components } from './generated/openapi.ts';

export type Certificate = components['schemas']['EvidenceCertificate'];
export type KeySet = components['schemas']['JsonWebKeySet'];

/** The bytes that the API served, with the header `X-Certificate-Signature`. */
export type DetachedCertificate = { readonly bytes: Uint8Array; readonly signature: string };
/** The self-contained file (`application/jose+json`), as bytes or text. With any other member it is not valid. */
export type SignedFile = { readonly file: Uint8Array | string };

export type CertificateChecks = {
  /** The expected id is made from the digest of the bytes. */
  readonly digest_matches_id: boolean;
  /** A key of the set signed exactly these bytes. */
  readonly signature_valid: boolean;
  /** The bytes are canonical JSON (RFC 8785). */
  readonly canonical: boolean;
  /** The postings sum to zero in each currency. */
  readonly ledger_balanced: boolean;
  /** It is about the expected settlement. */
  readonly settlement_matches: boolean;
};

export type VerifiedCertificate = {
  readonly valid: boolean;
  /** As the bytes give it. */
  readonly certId: string;
  readonly checks: CertificateChecks;
  /** Undefined when the bytes are not a certificate. Do not use it unless `valid` is true. */
  readonly certificate: Certificate | undefined;
};

/** What you know of the certificate from elsewhere. What is left out is not compared. */
export type Expected = {
  readonly certId?: string | undefined;
  readonly settlementId?: string | undefined;
};

/**
 * @param keys of `/.well-known/jwks.json`, fetched from the API at any time before
 * @returns each check, and whether all passed; it throws for no content whatever
 */
export function verifyCertificate(
  given: DetachedCertificate | SignedFile,
  keys: KeySet,
  { certId, settlementId }: Expected = {},
): VerifiedCertificate {
  const { bytes, signature } = 'file' in given ? (readSigned(given.file) ?? NOTHING) : given;
  const own = `CERT-${createHash('sha256').update(bytes).digest('hex').slice(0, 32).toUpperCase()}`;
  const content = parsed(bytes);
  const checks: CertificateChecks = {
    digest_matches_id: certId === undefined || certId === own,
    signature_valid: isSigned(bytes, signature, keys),
    canonical: isCanonical(content, bytes),
    ledger_balanced: isBalanced(content),
    settlement_matches: isObject(content) && (settlementId ?? content['settlement_id']) === content['settlement_id'],
  };
  const valid = Object.values(checks).every(Boolean);
  return { valid, certId: own, checks, certificate: isObject(content) ? (content as Certificate) : undefined };
}

const NOTHING: DetachedCertificate = { bytes: new Uint8Array(), signature: '' };

const JSON_STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/g;

/**
 * The certificate and its signature in a signed file, a flattened JWS with an unencoded payload (RFC 7797).
 *
 * @returns undefined when it is no such file, or has more than what was signed: a reader could believe another member
 */
export function readSigned(file: Uint8Array | string): DetachedCertificate | undefined {
  const bytes = typeof file === 'string' ? new TextEncoder().encode(file) : file;
  const jws = parsed(bytes);
  // Three names and three values: of a name that comes twice, `parsed` keeps the last value alone.
  if (!isObject(jws) || new TextDecoder().decode(bytes).match(JSON_STRING)?.length !== 6) return undefined;
  const { payload, protected: header, signature } = jws;
  if (typeof payload !== 'string' || typeof header !== 'string' || typeof signature !== 'string') return undefined;
  return { bytes: new TextEncoder().encode(payload), signature: `${header}..${signature}` };
}

/** Only two bits of the last digit of a 64-byte signature count; with the others zero it has one spelling. */
const DETACHED_JWS = /^(?<header>[A-Za-z0-9_-]+)\.\.(?<value>[A-Za-z0-9_-]{85}[AQgw])$/;

function isSigned(bytes: Uint8Array, signature: string, { keys }: KeySet): boolean {
  const { header, value } = DETACHED_JWS.exec(signature)?.groups ?? {};
  if (header === undefined || value === undefined) return false;
  const fields = parsed(Buffer.from(header, 'base64url'));
  if (!isObject(fields)) return false;
  const { alg, kid, b64, crit } = fields;
  // An extension that is not understood must be refused (RFC 7515).
  const isUnderstood = Array.isArray(crit) && crit.length === 1 && crit[0] === 'b64';
  if (alg !== 'EdDSA' || b64 !== false || !isUnderstood) return false;
  const key = keys.find((one) => one.kid === kid && one.kty === 'OKP' && one.crv === 'Ed25519');
  if (key === undefined) return false;
  const input = Buffer.concat([Buffer.from(`${header}.`), bytes]);
  const jwk: JsonWebKey = { kty: key.kty, crv: key.crv, x: key.x };
  try {
    return verify(null, input, createPublicKey({ key: jwk, format: 'jwk' }), Buffer.from(value, 'base64url'));
  } catch {
    // The set's key is not a point of the curve.
    return false;
  }
}

/** Undefined when the bytes are not UTF-8 JSON. */
function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

function isCanonical(content: unknown, bytes: Uint8Array): boolean {
  try {
    return content !== undefined && canonicalJson(content) === new TextDecoder().decode(bytes);
  } catch {
    // It is nested deeper than the stack.
    return false;
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** More decimals than any currency has. */
const DECIMALS = 6;
const AMOUNT = /^(-?[0-9]+)(?:\.([0-9]{1,6}))?$/;

function isBalanced(content: unknown): boolean {
  if (!isObject(content) || !Array.isArray(content['postings']) || content['postings'].length === 0) return false;
  const sums = new Map<string, bigint>();
  for (const posting of content['postings']) {
    if (!isObject(posting)) return false;
    const { amount, currency } = posting;
    if (typeof amount !== 'string' || typeof currency !== 'string') return false;
    const [, major, fraction = ''] = AMOUNT.exec(amount) ?? [];
    if (major === undefined) return false;
    sums.set(currency, (sums.get(currency) ?? 0n) + BigInt(major + fraction.padEnd(DECIMALS, '0')));
  }
  return [...sums.values()].every((sum) => sum === 0n);
}
