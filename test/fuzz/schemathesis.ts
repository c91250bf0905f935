/**
 * Runs Schemathesis over `/openapi.json` of a running stack: requests made of the document alone, right and wrong, each
 * answer held against it. A fixed seed, a bounded time.
 */
import path from 'node:path';
import { execa } from 'execa';
import { createFuzzCaller } from './caller.ts';
import type { PythonProgram } from './python.ts';

const CONFIG_FILE = path.join(import.meta.dirname, 'schemathesis.toml');
const START = 'import sys; from schemathesis.cli import schemathesis; sys.exit(schemathesis())';
const REQUEST_TIMEOUT_SECONDS = 10;
/** What a run may take beyond its budget: starting, and shrinking what it found. */
const GRACE_SECONDS = 120;

/** One operation needs a few seconds, on a busy machine some more. */
const ALONE_SECONDS = 30;

/** A run that had no time for a single request ends with 0 too. */
const GENERATED = /^\s*[1-9]\d* generated/;

/**
 * Each has its turn alone, with a credential of its own: the first two end the credential that everything else is fuzzed
 * with, and of the third the generator learns from a 422 that a field is always required which only one decision needs.
 */
const ALONE = ['/v1/orgs/keys/{key_id}/rotate', '/consumer/auth/logout', '/v1/kyc/{verification_id}/complete'];

export type FuzzOptions = {
  readonly python: PythonProgram;
  readonly baseUrl: string;
  readonly seconds: number;
  readonly seed: number;
  /** At most so many requests for each operation, kind and phase; only the time bounds them where it is not said. */
  readonly maxExamples?: number;
  /** Waits where the stack says that it is too much; its limit is its own. */
  readonly obeysRateLimit: boolean;
  readonly print: (line: string) => void;
};

/** @returns whether every answer was as the document promises; what was not is printed */
export async function fuzz(options: FuzzOptions): Promise<boolean> {
  const others = ALONE.flatMap((address) => ['--exclude-path', address]);
  const passed = [await run(options, options.seconds, [...others, '--phases', 'examples,coverage,fuzzing,stateful'])];
  for (const address of ALONE)
    passed.push(await run(options, ALONE_SECONDS, ['--include-path', address, '--phases', 'examples,coverage']));
  return passed.every(Boolean);
}

async function run(
  { python, baseUrl, seed, maxExamples, obeysRateLimit, print }: FuzzOptions,
  seconds: number,
  selection: readonly string[],
): Promise<boolean> {
  const { apiKey, sessionToken } = await createFuzzCaller(baseUrl);
  const args = [
    ...[
      '--config-file',
      CONFIG_FILE,
      'run',
      `${baseUrl}/openapi.json`,
      '--checks',
      'all',
      '--seed',
      String(seed),
      '--max-time',
      String(seconds),
    ],
    ...[
      '--request-timeout',
      String(REQUEST_TIMEOUT_SECONDS),
      '--generation-database',
      'none',
      '--no-color',
      '--continue-on-failure',
      '--warnings',
      'off',
    ],
    ...(maxExamples === undefined ? [] : ['--max-examples', String(maxExamples)]),
    ...(obeysRateLimit ? ['--rate-limit', 'auto'] : []),
    ...selection,
  ];
  const ran = execa(python.command, ['-c', START, ...args], {
    // It keeps notes between runs where it is started.
    cwd: python.directory,
    env: { ...python.env, FUZZ_API_KEY: apiKey, FUZZ_SESSION: sessionToken },
    all: true,
    buffer: false,
    reject: false,
    timeout: (seconds + GRACE_SECONDS) * 1_000,
  });
  let isTried = false;
  for await (const line of ran.iterable({ from: 'all' })) {
    isTried ||= GENERATED.test(String(line));
    print(String(line).replaceAll(apiKey, '<API_KEY>').replaceAll(sessionToken, '<access_token>'));
  }
  return (await ran).exitCode === 0 && isTried;
}
