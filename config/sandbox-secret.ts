/** The secrets of the local sandbox: generated if they are missing, and stored under `.local/`. */
import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { KEY_BYTES } from './environment.ts';
import { ConfigError } from './fault.ts';

/** The secrets that the local sandbox generates. If all of them are set, it writes nothing. */
export const SANDBOX_SECRETS = [
  'API_KEY_PEPPER',
  'ENCRYPTION_KEYS',
  'CERTIFICATE_SIGNING_KEY',
  'CARDPROC_WEBHOOK_SECRET',
  'BANKLEDGER_WEBHOOK_SECRET',
  'IDVERIFY_WEBHOOK_SECRET',
] as const;

/**
 * The generated secrets of the local sandbox. The file is written once, and only its owner can read it. It is written
 * under another name and then linked to its own: a process that starts at the same time, or after a power cut, reads the
 * whole file, or none.
 *
 * @throws ConfigError when the file is damaged
 */
export function sandboxSecrets(directory: string): Record<string, string> {
  const file = path.join(directory, 'sandbox-secrets.json');
  // Only a missing file is written, so that a full disk stops no command that can read it.
  if (existsSync(file)) return readSecrets(file);
  mkdirSync(directory, { recursive: true });
  const text = () => randomBytes(KEY_BYTES).toString('hex');
  const key = (id: string) => `${id}:${randomBytes(KEY_BYTES).toString('base64')}`;
  const fresh = {
    API_KEY_PEPPER: text(),
    ENCRYPTION_KEYS: key('sandbox-1'),
    CERTIFICATE_SIGNING_KEY: key('sandbox-1'),
    CARDPROC_WEBHOOK_SECRET: text(),
    BANKLEDGER_WEBHOOK_SECRET: text(),
    IDVERIFY_WEBHOOK_SECRET: text(),
  };
  const temporary = `${file}.${randomBytes(8).toString('hex')}`;
  try {
    writeFileSync(temporary, JSON.stringify(fresh, null, 2), { flag: 'wx', mode: 0o600, flush: true });
    linkSync(temporary, file);
    return fresh;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    return readSecrets(file);
  } finally {
    rmSync(temporary, { force: true });
  }
}

const Secrets = z.record(z.enum(SANDBOX_SECRETS), z.string());

function readSecrets(file: string): Record<string, string> {
  const text = readFileSync(file, 'utf8');
  try {
    return Secrets.parse(JSON.parse(text));
  } catch {
    throw new ConfigError([
      `${file} is damaged: put the old file back, or remove it and the data, which nothing opens without it`,
    ]);
  }
}
