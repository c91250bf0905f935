import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createCertifier } from '../../activities/certificate.ts';
import { certificateKeys } from '../../api/http/certificate-key.ts';
import {
  type DetachedCertificate,
  type KeySet,
  readSigned,
  verifyCertificate,
} from '../../clients/typescript/certificate.ts';
import { runVerification } from '../../scripts/verify-certificate.ts';
import { certificateFacts, otherTexts } from '../support/certificate.ts';
import { readSource, sourceFiles } from '../support/source.ts';

const KEY = { id: 'test-1', key: randomBytes(32) };
const NEW_KEY = { id: 'test-2', key: randomBytes(32) };
const ROOT = path.resolve(import.meta.dirname, '../..');

const sealed = await createCertifier([KEY]).certify(certificateFacts());
const { jwks } = certificateKeys([KEY]);
type Download = DetachedCertificate & { readonly certId: string; readonly jwks: KeySet };
const genuine: Download = { bytes: sealed.content, certId: sealed.certId, signature: sealed.signature, jwks };

/** Whether the id, the signature, the form and the postings are right. */
function outcomeOf(...given: Parameters<typeof verifyCertificate>): boolean[] {
  const { valid, checks } = verifyCertificate(...given);
  const { digest_matches_id, signature_valid, canonical, ledger_balanced } = checks;
  const passed = [digest_matches_id, signature_valid, canonical, ledger_balanced];
  expect(valid).toBe(!passed.includes(false));
  return passed;
}
const outcome = (changes: Partial<Download>): boolean[] => {
  const download = { ...genuine, ...changes };
  return outcomeOf(download, download.jwks, download);
};
const VALID = [true, true, true, true];

const HEADER = { alg: 'EdDSA', kid: 'own', b64: false, crit: ['b64'] };

/** Other bytes with the right id and a valid signature: only their content can be wrong. */
function certifyBytes(bytes: Buffer, fields = JSON.stringify(HEADER)): Partial<Download> {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const header = Buffer.from(fields).toString('base64url');
  const { x = '' } = publicKey.export({ format: 'jwk' });
  const value = sign(null, Buffer.concat([Buffer.from(`${header}.`), bytes]), privateKey).toString('base64url');
  return {
    bytes,
    certId: `CERT-${createHash('sha256').update(bytes).digest('hex').slice(0, 32).toUpperCase()}`,
    signature: `${header}..${value}`,
    jwks: { keys: [{ kty: 'OKP', crv: 'Ed25519', x, kid: 'own', use: 'sig', alg: 'EdDSA' }] },
  };
}

describe('a certificate is refused', () => {
  test('any of its bytes changed', () => {
    for (let place = 0; place < sealed.content.length; place += 1) {
      const bytes = Buffer.from(sealed.content);
      bytes.writeUInt8(bytes.readUInt8(place) ^ (1 << (place % 8)), place);
      expect(outcome({ bytes }).slice(0, 2), `byte ${place}`).toEqual([false, false]);
    }
  });

  test('any character of its signature changed', () => {
    for (const signature of otherTexts(sealed.signature))
      expect(outcome({ signature }), signature).toEqual([true, false, true, true]);
  });

  test('cut short, made longer or empty', () => {
    for (const bytes of [
      sealed.content.subarray(0, -1),
      Buffer.concat([sealed.content, Buffer.from('\n')]),
      Buffer.alloc(0),
    ]) {
      expect(outcome({ bytes }).slice(0, 2)).toEqual([false, false]);
    }
  });

  test("another certificate's id, or its signature", async () => {
    const { settlement, ...rest } = certificateFacts();
    const other = await createCertifier([KEY]).certify({
      ...rest,
      settlement: { ...settlement, settlementId: 'stl_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb' },
    });
    expect(outcome({ certId: other.certId })).toEqual([false, true, true, true]);
    expect(outcome({ signature: other.signature })).toEqual([true, false, true, true]);
    expect(outcome({ bytes: other.content })).toEqual([false, false, true, true]);
  });

  test('a key that is not in the key set, or that signed under the id of another', () => {
    for (const keys of [[NEW_KEY], [{ ...NEW_KEY, id: KEY.id }]])
      expect(outcome({ jwks: certificateKeys(keys).jwks })).toEqual([true, false, true, true]);
  });

  test('a signature of another kind, although a key of the set made it', () => {
    const { content } = sealed;
    expect(outcome(certifyBytes(content))).toEqual(VALID);
    const { b64: _b64, ...encoded } = HEADER;
    const others = [{ alg: 'none' }, { b64: true }, { crit: ['b64', 'exp'] }, { crit: [] }];
    for (const header of [...others.map((other) => ({ ...HEADER, ...other })), encoded])
      expect(outcome(certifyBytes(content, JSON.stringify(header)))).toEqual([true, false, true, true]);
  });

  test('JSON that is not canonical, although its id and signature are valid', () => {
    const content = JSON.parse(sealed.content.toString());
    const spaced = Buffer.from(JSON.stringify(content, null, 1));
    const doubled = Buffer.from(sealed.content.toString().replace('{"amounts"', '{"amounts":{},"amounts"'));
    for (const bytes of [spaced, doubled]) expect(outcome(certifyBytes(bytes))).toEqual([true, true, false, true]);
    const marked = Buffer.from(`\ufeff${sealed.content}`);
    expect(outcome(certifyBytes(marked))).toEqual([true, true, false, false]);
  });

  test.each([
    ['names in the order of their units', '{"B":"","a":"",', true],
    ['names in another order', '{"a":"","B":"",', false],
    ['half a surrogate pair, which has no canonical form', '{"a":"\\ud800",', false],
  ])('%s, as RFC 8785 has it', (_what, beginning, isCanonical) => {
    const text = sealed.content.toString().replace(/^{(?="amounts")/, beginning);
    expect(text).toContain(beginning);
    expect(outcome(certifyBytes(Buffer.from(text)))).toEqual([true, true, isCanonical, true]);
  });

  test('JSON that is nested deeper than the stack', () => {
    const deep = '['.repeat(100_000) + ']'.repeat(100_000);
    const text = sealed.content.toString();
    expect(outcome(certifyBytes(Buffer.from(deep)))).toEqual([true, true, false, false]);
    expect(outcome(certifyBytes(Buffer.from(text.replace('"-37829.63"', deep))))).toEqual([true, true, false, false]);
    const header = JSON.stringify(HEADER).replace('["b64"]', deep);
    expect(outcome(certifyBytes(sealed.content, header))).toEqual([true, false, true, true]);
    expect(verifyCertificate({ file: deep }, jwks).valid).toBe(false);
  });

  test('postings that do not sum to zero in each currency, although its id and signature are valid', () => {
    const canonical = sealed.content.toString();
    const changes = [
      canonical.replace('"amount":"-37829.63"', '"amount":"-37829.62"'),
      canonical.replace('"amount":"-37829.63","currency":"JMD"', '"amount":"-37829.63","currency":"USD"'),
      canonical.replace(/"postings":\[.*?\]/, '"postings":[]'),
      canonical.replace('"amount":"-37829.63"', '"amount":"-37829.63e0"'),
    ];
    for (const text of changes) {
      expect(text).not.toBe(canonical);
      expect(outcome(certifyBytes(Buffer.from(text)))).toEqual([true, true, true, false]);
    }
  });
});

describe('a certificate is accepted', () => {
  test('valid as it was issued', () => {
    expect(outcome({})).toEqual(VALID);
  });

  test('valid after a key rotation, because the key set keeps the old key', () => {
    expect(outcome({ jwks: certificateKeys([NEW_KEY, KEY]).jwks })).toEqual(VALID);
  });
});

describe('a signed file', () => {
  const [header = '', , value = ''] = sealed.signature.split('.');
  const members = { payload: sealed.content.toString(), protected: header, signature: value };
  const check = (content: unknown): boolean[] | 'no signed file' => {
    const file = typeof content === 'string' ? content : JSON.stringify(content);
    const checks = outcomeOf({ file }, jwks, genuine);
    return readSigned(file) === undefined && checks.includes(false) ? 'no signed file' : checks;
  };

  test('has all that the checks need, however it is spaced', () => {
    expect(check(members)).toEqual(VALID);
    expect(check(JSON.stringify(members, null, 2))).toEqual(VALID);
  });

  test('is refused with another payload, header or signature', () => {
    const changed = members.payload.replace('250.00', '950.00');
    expect(check({ ...members, payload: changed })).toEqual([false, false, true, true]);
    expect(check({ ...members, payload: `${members.payload} ` })).toEqual([false, false, false, true]);
    const none = Buffer.from(JSON.stringify({ alg: 'none' })).toString('base64url');
    for (const other of [none, '', header.slice(1)])
      expect(check({ ...members, protected: other })).toEqual([true, false, true, true]);
    for (const other of ['', value.slice(0, -1), `${value}A`, `${value.slice(0, -1)}.`])
      expect(check({ ...members, signature: other })).toEqual([true, false, true, true]);
  });

  test.for([
    ['an unsigned member, which a reader could believe', { ...members, payee: { name: 'Marcia Brown' } }],
    [
      'a second payload before the signed one, which a reader could believe',
      JSON.stringify(members).replace('{', '{"payload":"{\\"amount\\":\\"950.00\\"}",'),
    ],
    ['an unprotected header', { ...members, header: { kid: 'other' } }],
    ['several signatures', { payload: members.payload, signatures: [members] }],
    ['a payload that is no text', { ...members, payload: JSON.parse(members.payload) }],
    ['no signature', { payload: members.payload, protected: header }],
    ['the bare certificate', members.payload],
    ['no JSON', 'signed'],
  ] as const)('is refused with %s', ([, file]) => {
    expect(check(file)).toBe('no signed file');
  });
});

describe('the command', () => {
  let folder: string;
  const file = (name: string) => path.join(folder, name);
  const signedFile = () => file(`${sealed.certId}.jose.json`);
  const bareFile = () => file(`${sealed.certId}.json`);
  const withKeys = (...args: string[]) => [...args, '--jwks', file('jwks.json')];
  /** Runs the command in this process. A test below starts it as its users do. */
  const run = (args: readonly string[]) => {
    const log = vi.spyOn(console, 'log').mockReturnValue();
    const error = vi.spyOn(console, 'error').mockReturnValue();
    const exitCode = runVerification(args);
    const [printed, said] = [log, error].map((spy) => spy.mock.calls.flat().map(String));
    vi.restoreAllMocks();
    return { exitCode, printed: printed ?? [], said: said ?? [] };
  };
  const beginnings = (printed: readonly string[]) => printed.map((line) => line.slice(0, 3));

  beforeAll(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'verify-certificate-'));
    const [protectedHeader, , signature] = sealed.signature.split('.');
    const signed = { payload: sealed.content.toString(), protected: protectedHeader, signature };
    await writeFile(bareFile(), sealed.content);
    await writeFile(signedFile(), JSON.stringify(signed));
    await writeFile(file('tampered.json'), sealed.content.toString().replace('250.00', '950.00'));
    await writeFile(file('signature.txt'), `${sealed.signature}\n`);
    await writeFile(file('jwks.json'), JSON.stringify(jwks));
  });
  afterAll(() => rm(folder, { recursive: true }));

  test.each([
    ['no arguments', () => [], 'Give one file.'],
    ['no key set', () => [signedFile()], 'Give the key set with --jwks.'],
    [
      'a file without an id in its name',
      () => withKeys(file('tampered.json'), '--signature', sealed.signature),
      'tampered.json has no CERT-… id: give it with --cert-id.',
    ],
    [
      'a file that does not exist',
      () => withKeys(file(`CERT-${'0'.repeat(32)}.json`), '--signature', sealed.signature),
      'cannot be read as a certificate.',
    ],
    [
      'a certificate without its signature',
      () => withKeys(bareFile()),
      'cannot be read as a signed file (give --signature if it is none).',
    ],
    [
      'an invalid key set',
      () => [bareFile(), '--signature', sealed.signature, '--jwks', file('signature.txt')],
      'signature.txt cannot be read as a key set.',
    ],
  ])('exits with 1, says why in words, and shows the usage, given %s', (_what, args, why) => {
    const usage = expect.stringMatching(/^Usage: npm run verify-certificate -- .*--signature .*--jwks/);
    const said = [expect.stringContaining(why), usage];
    expect(run(args())).toEqual({ exitCode: 1, printed: [], said });
  });

  test('exits with 0 for a signed file, which needs no more than the key set', async () => {
    const command = ['--import', 'tsx', 'scripts/verify-certificate.ts', ...withKeys(signedFile())];
    const { exitCode, stdout } = await execa(process.execPath, command, { cwd: ROOT, reject: false });
    expect([exitCode, beginnings(stdout.split('\n'))]).toEqual([0, ['yes', 'yes', 'yes', 'yes', 'CER']]);
  });

  test('exits with 1 and names the failed checks', () => {
    const named = ['--cert-id', sealed.certId, '--signature', sealed.signature];
    const { exitCode, printed } = run(withKeys(file('tampered.json'), ...named));
    expect([exitCode, beginnings(printed)]).toEqual([1, ['NO ', 'NO ', 'yes', 'yes', 'CER']]);
    expect(printed.at(-1)).toContain(`${sealed.certId} is NOT valid.`);
  });

  test.each([
    ['as an argument', () => sealed.signature],
    ['in a file', () => file('signature.txt')],
  ])('exits with 0 for a genuine download with its signature %s, and names the settlement', (_how, signature) => {
    const { exitCode, printed } = run(withKeys(bareFile(), '--signature', signature()));
    expect([exitCode, beginnings(printed)]).toEqual([0, ['yes', 'yes', 'yes', 'yes', 'CER']]);
    const subject = 'It certifies settlement stl_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: a simulation, unanchored.';
    expect(printed.at(-1)).toContain(`is valid. ${subject}`);
  });

  test('finds a relative file in the folder where its caller called npm', () => {
    onTestFinished(() => void vi.unstubAllEnvs());
    vi.stubEnv('INIT_CWD', folder);
    const args = [path.basename(bareFile()), '--signature', 'signature.txt', '--jwks', 'jwks.json'];
    expect(run(args)).toMatchObject({ exitCode: 0, said: [] });
  });
});

test('the verifier shares no code with the service', () => {
  const importsOf = (file: string) => [...readSource(file).matchAll(/\bfrom '([^']*)'/g)].map(([, from = '']) => from);
  const [client, ...others] = importsOf('scripts/verify-certificate.ts').filter((from) => from.startsWith('.'));
  expect([client, others]).toEqual(['../clients/typescript/certificate.ts', []]);
  for (const file of sourceFiles('.ts').filter((one) => one.startsWith('clients/typescript/')))
    for (const from of importsOf(file)) expect(from, file).toMatch(/^(\.\/|node:)/);
});
