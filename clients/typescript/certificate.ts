/** Verifies an evidence certificate offline, with nothing but its file and the published keys (contract §7). */
import { createHash, createPublicKey, type JsonWebKey, verify } from 'node:crypto';
import { canonicalJson } from './canonical-json.ts';
import type { components } from './generated/openapi.ts';

export type Certificate = components['schemas']['EvidenceCertificate'];
export type KeySet = components['schemas']['JsonWebKeySet'];

/** The bytes that the API served, with the header `X-Certificate-Signature`. */
export type DetachedCertificate = { readonly bytes: Uint8Array; readonly signature: string };
/** The self-contained file: a JWS in JSON (`application/jose+json`), as bytes or text. */
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
  const { bytes, header, value } = 'file' in given ? signedFile(given.file) : detached(given);
  const own = `CERT-${createHash('sha256').update(bytes).digest('hex').slice(0, 32).toUpperCase()}`;
  const content = parsed(bytes);
  const checks: CertificateChecks = {
    digest_matches_id: certId === undefined || certId === own,
    signature_valid: isSigned({ bytes, header, value }, keys),
    canonical: content !== undefined && canonicalJson(content) === new TextDecoder().decode(bytes),
    ledger_balanced: isBalanced(content),
    settlement_matches: isObject(content) && (settlementId ?? content['settlement_id']) === content['settlement_id'],
  };
  const valid = Object.values(checks).every(Boolean);
  return { valid, certId: own, checks, certificate: isObject(content) ? (content as Certificate) : undefined };
}

/** The parts of a JWS. `header` and `value` are base64url; what the text has not is empty, and then not valid. */
type Signed = { readonly bytes: Uint8Array; readonly header: string; readonly value: string };

const NOTHING: Signed = { bytes: new Uint8Array(), header: '', value: '' };

/** Only two bits of the last digit of a 64-byte signature count; with the others zero it has one spelling. */
const SIGNATURE = /^[A-Za-z0-9_-]{85}[AQgw]$/;
const BASE64URL = /^[A-Za-z0-9_-]+$/;

function detached({ bytes, signature }: DetachedCertificate): Signed {
  const [header = '', payload, value = '', ...rest] = signature.split('.');
  return payload === '' && rest.length === 0 ? { bytes, header, value } : { ...NOTHING, bytes };
}

function signedFile(file: Uint8Array | string): Signed {
  const jws = parsed(typeof file === 'string' ? new TextEncoder().encode(file) : file);
  if (!isObject(jws) || typeof jws['payload'] !== 'string') return NOTHING;
  const { payload, signatures } = jws;
  const [only] = Array.isArray(signatures) ? signatures : [jws];
  if (!isObject(only)) return NOTHING;
  const { protected: header, signature: value } = only;
  if (typeof header !== 'string' || typeof value !== 'string') return NOTHING;
  if (headerOf(header)?.['b64'] === false) return { bytes: new TextEncoder().encode(payload), header, value };
  return BASE64URL.test(payload) ? { bytes: Buffer.from(payload, 'base64url'), header, value } : NOTHING;
}

function headerOf(header: string): Readonly<Record<string, unknown>> | undefined {
  const content = parsed(Buffer.from(header, 'base64url'));
  return isObject(content) ? content : undefined;
}

/** The only extension of JWS that is understood (RFC 7797): whether the payload is signed as base64url. */
const UNENCODED = 'b64';

function isSigned({ header, bytes, value }: Signed, { keys }: KeySet): boolean {
  if (!BASE64URL.test(header) || !SIGNATURE.test(value)) return false;
  const { alg, kid, crit = [], b64 = true } = headerOf(header) ?? {};
  const isUnderstood = Array.isArray(crit) && crit.every((name) => name === UNENCODED);
  const isDeclared = b64 === true || (Array.isArray(crit) && crit.includes(UNENCODED));
  if (alg !== 'EdDSA' || !isUnderstood || !isDeclared) return false;
  const key = keys.find((one) => one.kid === kid && one.kty === 'OKP' && one.crv === 'Ed25519');
  if (key === undefined) return false;
  const payload = b64 === false ? Buffer.from(bytes) : Buffer.from(Buffer.from(bytes).toString('base64url'));
  const input = Buffer.concat([Buffer.from(`${header}.`), payload]);
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

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** More decimals than any currency has. */
const DECIMALS = 6;
const AMOUNT = /^(-?[0-9]+)(?:\.([0-9]{1,6}))?$/;

function isBalanced(content: unknown): boolean {
  if (!isObject(content) || !Array.isArray(content['postings']) || content['postings'].length === 0) return false;
  const sums = new Map<string, bigint>();
  for (const posting of content['postings']) {
    if (!isObject(posting) || typeof posting['currency'] !== 'string') return false;
    const [, major, fraction = ''] = AMOUNT.exec(String(posting['amount'])) ?? [];
    if (major === undefined) return false;
    const units = BigInt(major + fraction.padEnd(DECIMALS, '0'));
    sums.set(posting['currency'], (sums.get(posting['currency']) ?? 0n) + units);
  }
  return [...sums.values()].every((sum) => sum === 0n);
}
