/**
 * `npm run verify-certificate -- <file> --jwks <file>`: checks a downloaded certificate offline (contract §7): the
 * signed file (`application/jose+json`), or the JSON with its `--signature`. It shares no code with the service, so
 * that a mistake of the service cannot hide here.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import canonicalize from 'canonicalize';
import { createLocalJWKSet, errors, flattenedVerify, type JSONWebKeySet } from 'jose';
import { z } from 'zod';

const USAGE =
  'Usage: npm run verify-certificate -- <CERT-….jose.json, or CERT-….json with --signature <the X-Certificate-Signature, or a file with it>> --jwks <file> [--cert-id CERT-…]';

export type Download = {
  readonly bytes: Buffer;
  readonly certId: string;
  /** `<header>..<signature>`. */
  readonly signature: string;
  readonly jwks: JSONWebKeySet;
};

export type Check = { readonly passed: boolean; readonly claim: string };

const CERTIFICATE_ID = /CERT-[0-9A-F]{32}/;
/** Only two bits of the last character count. The others must be zero, so that each signature has exactly one text. */
const DETACHED_JWS = /^(?<header>[A-Za-z0-9_-]+)\.\.(?<value>[A-Za-z0-9_-]{85}[AQgw])$/;

/** Each claim that must be true of a valid certificate, and whether it is. */
export async function verifyCertificate({ bytes, certId, signature, jwks }: Download): Promise<Check[]> {
  const digest = createHash('sha256').update(bytes).digest('hex');
  const content = parse(bytes);
  return [
    {
      passed: certId === `CERT-${digest.slice(0, 32).toUpperCase()}`,
      claim: `the id ${certId} is made from the digest of the bytes, ${digest}`,
    },
    { passed: await isSigned(bytes, signature, jwks), claim: 'a key of the key set signed exactly these bytes' },
    {
      passed: content !== undefined && bytes.equals(canonical(content)),
      claim: 'the bytes are canonical JSON (RFC 8785)',
    },
    { passed: isBalanced(content), claim: 'the postings sum to zero in each currency' },
  ];
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

function canonical(content: unknown): Buffer {
  try {
    return Buffer.from(canonicalize(content) ?? '');
  } catch {
    return Buffer.alloc(0);
  }
}

async function isSigned(bytes: Buffer, signature: string, jwks: JSONWebKeySet): Promise<boolean> {
  const { header, value } = DETACHED_JWS.exec(signature)?.groups ?? {};
  if (header === undefined || value === undefined) return false;
  try {
    await flattenedVerify({ protected: header, payload: bytes, signature: value }, createLocalJWKSet(jwks), {
      algorithms: ['EdDSA'],
    });
    return true;
  } catch (error) {
    if (error instanceof errors.JOSEError) return false;
    throw error;
  }
}

const Posting = z.object({
  amount: z.string().regex(/^-?[0-9]+(\.[0-9]+)?$/),
  currency: z.string().regex(/^[A-Z]{3}$/),
});
const WithPostings = z.object({ postings: z.array(Posting).min(1) });

/** More decimals than any currency has. */
const DECIMALS = 6;

function isBalanced(content: unknown): boolean {
  const read = WithPostings.safeParse(content);
  if (!read.success) return false;
  const sums = new Map<string, bigint>();
  for (const { amount, currency } of read.data.postings) {
    const [major = '', fraction = ''] = amount.split('.');
    if (fraction.length > DECIMALS) return false;
    sums.set(currency, (sums.get(currency) ?? 0n) + BigInt(major + fraction.padEnd(DECIMALS, '0')));
  }
  return [...sums.values()].every((sum) => sum === 0n);
}

const Subject = z.object({
  settlement_id: z.string(),
  simulation: z.literal(true),
  anchor: z.object({ status: z.string() }),
});

/** Which settlement a certificate is about, so that the reader can compare it with the expected one. */
function describeSubject(content: unknown): string {
  const read = Subject.safeParse(content);
  return read.success
    ? `It certifies settlement ${read.data.settlement_id}: a simulation, ${read.data.anchor.status}.`
    : 'It does not name a settlement.';
}

const KeySet = z.object({ keys: z.array(z.looseObject({ kty: z.string() })).min(1) });

/** Nothing but what was signed: a reader of the file could believe another member of it. */
const SignedFile = z.strictObject({ payload: z.string(), protected: z.string(), signature: z.string() });

/**
 * The certificate and its signature in a signed file.
 *
 * @throws Error when the bytes are no such file
 */
export function readSigned(bytes: Buffer): Pick<Download, 'bytes' | 'signature'> {
  const file = SignedFile.parse(parse(bytes));
  return { bytes: Buffer.from(file.payload), signature: `${file.protected}..${file.signature}` };
}

/** @throws Error that names the file, when it cannot be read or is not what it should be */
function readAs<T>(what: string, file: string, read: (bytes: Buffer) => T): T {
  try {
    return read(readFileSync(file));
  } catch {
    throw new Error(`${file} cannot be read as ${what}.`);
  }
}

/** @throws Error in words when an argument is missing or a file cannot be read */
function readDownload(args: readonly string[]): Download {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { signature: { type: 'string' }, jwks: { type: 'string' }, 'cert-id': { type: 'string' } },
  });
  const [file, ...more] = positionals;
  if (file === undefined || more.length > 0) throw new Error('Give one file.');
  if (values.jwks === undefined) throw new Error('Give the key set with --jwks.');
  const certId = values['cert-id'] ?? CERTIFICATE_ID.exec(path.basename(file))?.[0];
  if (certId === undefined) throw new Error(`The name of ${file} has no CERT-… id: give it with --cert-id.`);
  const jwks = readAs('a key set', values.jwks, (bytes) => KeySet.parse(parse(bytes)));
  const given = values.signature;
  if (given === undefined)
    return { ...readAs('a signed file (give --signature if it is none)', file, readSigned), certId, jwks };
  const signature = existsSync(given) ? readAs('a signature', given, (bytes) => bytes.toString().trim()) : given;
  return { bytes: readAs('a certificate', file, (bytes) => bytes), certId, signature, jwks };
}

/** The command. @returns the exit code: 0 when every check passed */
export async function runVerification(args: readonly string[]): Promise<number> {
  if (args.includes('--help')) {
    console.log(USAGE);
    return 0;
  }
  let download: Download;
  try {
    download = readDownload(args);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    console.error(USAGE);
    return 1;
  }
  const checks = await verifyCertificate(download);
  for (const { passed, claim } of checks) console.log(`${passed ? 'yes' : 'NO '}  ${claim}`);
  const valid = checks.every(({ passed }) => passed);
  console.log(
    valid
      ? `${download.certId} is valid. ${describeSubject(parse(download.bytes))}`
      : `${download.certId} is NOT valid.`,
  );
  return valid ? 0 : 1;
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  process.exitCode = await runVerification(process.argv.slice(2));
