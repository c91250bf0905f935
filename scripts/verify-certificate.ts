/**
 * `npm run verify-certificate -- <file> --jwks <file>`: checks a downloaded certificate offline (contract §7): the
 * signed file (`application/jose+json`), or the JSON with its `--signature`. It verifies with the partners' client,
 * which shares no code with the service, so that a mistake of the service cannot hide here.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import {
  type DetachedCertificate,
  type KeySet,
  readSigned,
  verifyCertificate,
} from '../clients/typescript/certificate.ts';

const USAGE =
  'Usage: npm run verify-certificate -- <CERT-….jose.json, or CERT-….json with --signature <the X-Certificate-Signature, or a file with it>> --jwks <file> [--cert-id CERT-…]';

type Download = DetachedCertificate & { readonly certId: string; readonly jwks: KeySet };

const CERTIFICATE_ID = /CERT-[0-9A-F]{32}/;

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

const KeySetFile = z.object({ keys: z.array(z.looseObject({ kty: z.string() })).min(1) });

/** `npm run` changes into the clone, so a relative name begins where the caller was. */
const fromCaller = (file: string): string => path.resolve(process.env['INIT_CWD'] ?? '', file);

/** What is no set of keys is refused. Of a key, the verifier itself checks all that it uses. */
const readKeySet = (bytes: Buffer) => KeySetFile.parse(JSON.parse(bytes.toString())) as KeySet;

/** @throws Error that names the file, when it cannot be read or is not what it should be */
function readAs<T>(what: string, file: string, read: (bytes: Buffer) => T | undefined): T {
  let content: T | undefined;
  try {
    content = read(readFileSync(fromCaller(file)));
  } catch {
    content = undefined;
  }
  if (content === undefined) throw new Error(`${file} cannot be read as ${what}.`);
  return content;
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
  const jwks = readAs('a key set', values.jwks, readKeySet);
  const given = values.signature;
  if (given === undefined)
    return { ...readAs('a signed file (give --signature if it is none)', file, readSigned), certId, jwks };
  const signature = existsSync(fromCaller(given))
    ? readAs('a signature', given, (bytes) => bytes.toString().trim())
    : given;
  return { bytes: readAs('a certificate', file, (bytes) => bytes), certId, signature, jwks };
}

/** The command. @returns the exit code: 0 when every check passed */
export function runVerification(args: readonly string[]): number {
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
  const { certId, bytes, jwks } = download;
  const { valid, checks, certificate } = verifyCertificate(download, jwks, { certId });
  const digest = createHash('sha256').update(bytes).digest('hex');
  const claims: readonly [boolean, string][] = [
    [checks.digest_matches_id, `the id ${certId} is made from the digest of the bytes, ${digest}`],
    [checks.signature_valid, 'a key of the key set signed exactly these bytes'],
    [checks.canonical, 'the bytes are canonical JSON (RFC 8785)'],
    [checks.ledger_balanced, 'the postings sum to zero in each currency'],
  ];
  for (const [passed, claim] of claims) console.log(`${passed ? 'yes' : 'NO '}  ${claim}`);
  console.log(valid ? `${certId} is valid. ${describeSubject(certificate)}` : `${certId} is NOT valid.`);
  return valid ? 0 : 1;
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  process.exitCode = runVerification(process.argv.slice(2));
