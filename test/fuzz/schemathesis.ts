/**
 * Runs Schemathesis on `/openapi.json` of a running stack. It makes valid and invalid requests from the document alone
 * and compares each answer with the document. The seed is fixed and the time is limited.
 */
import path from 'node:path';
import { execa } from 'execa';
import { createConsumerClient } from '../../clients/typescript/index.ts';
import { signUp } from '../../scripts/sandbox/partner.ts';
import { stretched } from '../support/patience.ts';
import { acquirePython, PYTHON_DIRECTORY, type PythonProgram } from '../support/python-program.ts';

const CONFIG_FILE = path.join(import.meta.dirname, 'schemathesis.toml');
const HOOKS_FILE = path.join(import.meta.dirname, 'hooks.py');
const START = 'import sys; from schemathesis.cli import schemathesis; sys.exit(schemathesis())';
/** Longer than the API waits for anything. */
const REQUEST_TIMEOUT_MS = 15_000;
/** The time that a run may take beyond its budget, for starting and for shrinking what it found. */
const GRACE_SECONDS = 120;

/** One operation needs a few seconds, on a busy machine more. */
const APART_SECONDS = 30;

/** A run that made no request also exits with 0, so its output must show that it tested what it selected. */
const COUNTED = /^\s*(Selected|Tested): (\d+)/;

/**
 * Operations that do not run with the others, in runs with credentials of their own. The first ends the key that all
 * others need, the second the session. From a 422 of the third the generator learns that a field is always required,
 * although only one decision needs it.
 */
const APART = [['/v1/orgs/keys/{key_id}/rotate'], ['/consumer/auth/logout', '/v1/kyc/{verification_id}/complete']];

/** @throws Error in one sentence when there is no Python */
export const acquireSchemathesis = (say: (line: string) => void): Promise<PythonProgram> =>
  acquirePython('Fuzzing', say);

/** These try what the document shows, and the bounds that it states. */
const ENDING_PHASES = 'examples,coverage';

export type FuzzOptions = {
  readonly python: PythonProgram;
  readonly baseUrl: string;
  readonly seconds: number;
  readonly seed: number;
  /** Whether requests are also made at random, and from earlier answers. Only the time limits these. */
  readonly isEndless: boolean;
  /** Whether to obey the stack's rate limit, where the stack was not started for this run. */
  readonly obeysRateLimit: boolean;
  /** The providers' secrets, so that their events can be signed; none for a stack of someone else. */
  readonly secrets?: Readonly<Partial<Record<'cardproc' | 'bankledger' | 'idverify', string>>>;
  readonly print: (line: string) => void;
};

/** @returns whether every answer was as documented; prints those that were not */
export async function fuzz(options: FuzzOptions): Promise<boolean> {
  const others = APART.flat().flatMap((address) => ['--exclude-path', address]);
  const phases = options.isEndless ? `${ENDING_PHASES},fuzzing,stateful` : ENDING_PHASES;
  const caller = await createCaller(options.baseUrl);
  const passed = [await run(options, caller, options.seconds, [...others, '--phases', phases])];
  passed.push(await hasCreated(caller));
  if (passed.at(-1) === false) options.print('No recipient was created by the key, or none by the session.');
  for (const addresses of APART) {
    const these = addresses.flatMap((address) => ['--include-path', address]);
    const other = await createCaller(options.baseUrl);
    passed.push(await run(options, other, APART_SECONDS, [...these, '--phases', ENDING_PHASES]));
  }
  return passed.every(Boolean);
}

async function run(
  { python, baseUrl, seed, obeysRateLimit, secrets = {}, print }: FuzzOptions,
  { apiKey, sessionToken }: Caller,
  seconds: number,
  selection: readonly string[],
): Promise<boolean> {
  const args = [
    ...[
      '--config-file',
      CONFIG_FILE,
      'run',
      `${baseUrl}/openapi.json`,
      '--seed',
      String(seed),
      '--max-time',
      String(seconds),
    ],
    ...[
      '--request-timeout',
      String(Math.ceil(stretched(REQUEST_TIMEOUT_MS) / 1_000)),
      '--generation-database',
      'none',
      '--no-color',
      '--continue-on-failure',
      '--warnings',
      'off',
    ],
    ...(obeysRateLimit ? ['--rate-limit', 'auto'] : []),
    ...selection,
  ];
  const ran = execa(python.command, ['-c', START, ...args], {
    // Schemathesis keeps files between runs in its working directory.
    cwd: PYTHON_DIRECTORY,
    env: {
      ...python.env,
      ...Object.fromEntries(
        Object.entries(secrets).map(([name, secret]) => [`FUZZ_SECRET_${name.toUpperCase()}`, secret]),
      ),
      SCHEMATHESIS_HOOKS: HOOKS_FILE,
      FUZZ_API_KEY: apiKey,
      FUZZ_SESSION: sessionToken,
    },
    all: true,
    buffer: false,
    reject: false,
    timeout: (seconds + GRACE_SECONDS) * 1_000,
  });
  const counts = new Map<string, number>();
  for await (const line of ran.iterable({ from: 'all' })) {
    const [, name, count] = COUNTED.exec(String(line)) ?? [];
    if (name !== undefined && count !== undefined) counts.set(name, Number(count));
    print(String(line).replaceAll(apiKey, '<API_KEY>').replaceAll(sessionToken, '<access_token>'));
  }
  const tested = counts.get('Tested') ?? 0;
  const isTried = tested > 0 && tested === counts.get('Selected');
  return (await ran).exitCode === 0 && isTried;
}

type Caller = Awaited<ReturnType<typeof createCaller>>;

/** The full key of a new organization, and a new consumer's session. */
export async function createCaller(baseUrl: string) {
  const { apiKey, client: partner } = await signUp({ baseUrl }, 'Fuzzing');
  const consumer = createConsumerClient({ baseUrl });
  const { challenge_id, sandbox_code: code = '' } = await consumer.requestOtp({
    email: `${crypto.randomUUID()}@consumer.example`,
  });
  const { access_token: sessionToken } = await consumer.verifyOtp({ challenge_id, code });
  return { apiKey, sessionToken, partner, consumer };
}

/** Whether requests by both credentials were accepted. A run in which all are refused has documented answers too: 401. */
export async function hasCreated({ partner, consumer }: Pick<Caller, 'partner' | 'consumer'>): Promise<boolean> {
  const isEmpty = async (list: { first(count: number): Promise<readonly unknown[]> }): Promise<boolean> =>
    (await list.first(1).catch(() => [])).length === 0;
  return !(await isEmpty(partner.recipients.list())) && !(await isEmpty(consumer.recipients.list()));
}
