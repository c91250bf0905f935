import { execa } from 'execa';
import { describe, expect } from 'vitest';
import { SCENARIOS } from '../../domain/sandbox/scenario.ts';
import { SETTLEMENT_STATUSES } from '../../domain/settlement/state.ts';
import { EXIT, runProgram } from '../../ops/command-line/program.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { advance } from '../../scripts/sandbox/advance.ts';
import type { SandboxCommand } from '../../scripts/sandbox/command.ts';
import { event } from '../../scripts/sandbox/event.ts';
import { settleByCard, signUp } from '../../scripts/sandbox/partner.ts';
import { scenarios } from '../../scripts/sandbox/scenarios.ts';
import { changesSince, createWatch, type Watched, watch } from '../../scripts/sandbox/watch.ts';
import { withStack } from '../support/fixture.ts';
import { startHttpServer } from '../support/http-server.ts';
import { stretched } from '../support/patience.ts';

const test = withStack();

const watched = (changes: Partial<Watched>): Watched => ({
  status: 'accepted',
  amount: '250.00',
  source_currency: 'USD',
  destination_amount: '37829.63',
  destination_currency: 'JMD',
  timeline: [{ status: 'accepted', at: '2026-11-21T08:00:00.000Z' }],
  amount_received: '0.00',
  exceptions: [],
  failure: null,
  certificate_id: null,
  ...changes,
});

/** Runs a command of `npm run sandbox` in this process. */
async function run(sandboxCommand: SandboxCommand, apiKey: string | undefined, ...args: readonly string[]) {
  const printed: string[] = [];
  const print = (line: string) => void printed.push(line);
  const exitCode = await runProgram(sandboxCommand, args, { print, warn: print }, (act, printer) =>
    act({ ...printer, env: { API_KEY: apiKey } }),
  );
  return { exitCode, printed };
}

describe('the changes of a settlement', () => {
  const waiting = watched({
    status: 'awaiting_funds',
    timeline: [
      { status: 'accepted', at: '2026-11-21T08:00:00.000Z' },
      { status: 'awaiting_funds', at: '2026-11-21T08:00:01.000Z' },
    ],
  });

  test('each state is printed once, with the time of the settlement', () => {
    expect(changesSince(undefined, watched({}))).toEqual(['2026-11-21T08:00:00.000Z  accepted']);
    expect(changesSince(watched({}), waiting)).toEqual(['2026-11-21T08:00:01.000Z  awaiting_funds']);
    expect(changesSince(waiting, waiting)).toEqual([]);
  });

  test('a part of the amount is printed while the settlement waits for the rest', () => {
    expect(changesSince(waiting, { ...waiting, amount_received: '100.00' })).toEqual([
      '2026-11-21T08:00:01.000Z  received         100.00 USD so far',
    ]);
  });

  test('the whole amount is not printed as a part, though its state follows a moment later', () => {
    expect(changesSince(waiting, { ...waiting, amount_received: '250.00' })).toEqual([]);
  });

  test('an exception is printed once, also beyond the latest hundred that a read shows', () => {
    const exceptions = Array.from({ length: 101 }, (_, index) => ({
      type: 'overpaid' as const,
      at: `2026-11-21T08:00:02.${String(index).padStart(3, '0')}Z`,
      evidence_id: `evidence-${index}`,
    }));
    const [before, now] = [exceptions.slice(0, 100), exceptions.slice(1)].map((shown) => ({
      ...waiting,
      exceptions: shown,
    }));
    expect(changesSince(before, now ?? waiting)).toEqual(['2026-11-21T08:00:02.100Z  exception        overpaid']);
    expect(changesSince(now, now ?? waiting)).toEqual([]);
  });

  test('an exception and a failure have lines of their own', () => {
    const failed = watched({
      status: 'failed',
      timeline: [...waiting.timeline, { status: 'failed', at: '2026-11-21T08:00:02.000Z', reason: 'debit_returned' }],
      amount_received: '250.00',
      exceptions: [{ type: 'returned', at: '2026-11-21T08:00:02.000Z', evidence_id: null, reason: 'R01' }],
      failure: { code: 'debit_returned', message: 'The debit was returned.', doc_url: '/docs/failures#other-codes' },
    });
    expect(changesSince(waiting, failed)).toEqual([
      '2026-11-21T08:00:02.000Z  failed           debit_returned',
      '2026-11-21T08:00:02.000Z  exception        returned, R01',
      'Ended as failed: The debit was returned. (debit_returned)',
    ]);
  });
});

test('watch names the answer that it has seen, so that a change between two reads is not missed', async () => {
  const asked: unknown[] = [];
  const first = JSON.stringify(watched({}));
  const last = JSON.stringify(watched({ status: 'canceled', timeline: [{ status: 'canceled', at: 'later' }] }));
  const waited = { 'preference-applied': 'wait' };
  const answers = [
    { status: 200, headers: { ...waited, etag: '"1"' }, body: first },
    { status: 304, headers: { ...waited, etag: '"1"' }, body: '' },
    // An answer whose tag was lost on the way.
    { status: 200, headers: waited, body: first },
    { status: 200, headers: { etag: '"2"' }, body: last },
  ];
  const { url, close } = await startHttpServer((response, received) => {
    asked.push([received.headers['if-none-match'], received.headers['prefer']]);
    const { status, headers, body } = answers.shift() ?? { status: 500, headers: {}, body: '' };
    response.writeHead(status, headers).end(body);
  });
  try {
    const { exitCode, printed } = await run(watch, 'sk_local_x', 'stl_1', '--url', url);
    expect([exitCode, printed.length, printed.at(-1)]).toEqual([EXIT.done, 2, 'Ended as canceled.']);
  } finally {
    await close();
  }
  expect(asked).toEqual([
    [undefined, undefined],
    ['"1"', 'wait=30'],
    ['"1"', 'wait=30'],
    [undefined, 'wait=1'],
  ]);
});

test('watch ends when the API has gone and does not answer any more, and says so', async () => {
  let answered = 0;
  const { url, close } = await startHttpServer((response) => {
    answered += 1;
    if (answered === 1) response.end(JSON.stringify(watched({})));
    else response.destroy();
  });
  try {
    expect(await run(createWatch(stretched(500)), 'sk_local_x', 'stl_1', '--url', url)).toEqual({
      exitCode: EXIT.unavailable,
      printed: ['2026-11-21T08:00:00.000Z  accepted', `The API at ${url} does not answer.`],
    });
  } finally {
    await close();
  }
  expect(answered).toBeGreaterThan(1);
});

test.for([
  ['watch', watch, []],
  ['advance', advance, []],
  ['event', event, ['payout_confirmed']],
] as const)('%s refuses what is no id as a wrong command line, and sends nothing', async ([, command, rest]) => {
  for (const id of ['..', '.', 'stl_1/cancel', 'stl_1?x=1', ' '])
    expect([id, await run(command, 'sk_local_x', id, ...rest, '--url', 'http://127.0.0.1:1')]).toEqual([
      id,
      {
        exitCode: EXIT.usage,
        printed: [
          "<settlement-id> must be a settlement's id, such as stl_abc.",
          expect.stringMatching(/^See npm run \w+ -- --help$/),
        ],
      },
    ]);
});

describe('the commands on a running stack', () => {
  // Started as people start it. The others run in this process.
  test('watch prints every state of a settlement and its certificate, and then ends', async ({ stack }) => {
    const partner = await signUp({ baseUrl: stack.baseUrl });
    const settlementId = await settleByCard(partner);
    const args = ['--import', 'tsx', 'scripts/sandbox.ts', 'watch', settlementId, '--url', stack.baseUrl];
    const { exitCode, stdout, stderr } = await execa('node', args, {
      cwd: repositoryRoot,
      env: { API_KEY: partner.apiKey },
      reject: false,
    });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    const states = stdout.split('\n').map((line) => line.split(/ +/)[1] ?? '');
    expect(states.filter((state) => SETTLEMENT_STATUSES.some((status) => status === state))).toEqual([
      'accepted',
      'awaiting_funds',
      'funded',
      'paying_out',
      'settled',
    ]);
    expect(stdout).toMatch(/Ended as settled: 37829\.63 JMD, simulated\. Certificate CERT-[0-9A-F]{32}\.$/);
  });

  test('advance moves the clock of a settlement that waits, and watch then shows its end', async ({ stack }) => {
    const { client, apiKey } = await signUp({ baseUrl: stack.baseUrl });
    const settlementId = await settleByCard({ client }, { card_token: 'tok_manual' });
    await client.settlements.wait(settlementId, { until: ['awaiting_funds'] });
    const moved = await run(advance, apiKey, settlementId, '--url', stack.baseUrl);
    expect(moved.printed.join()).toMatch(/^The settlement was awaiting_funds\. Its clock is now at 20\d\d-.+Z\.$/);
    const { printed } = await run(watch, apiKey, settlementId, '--url', stack.baseUrl);
    expect(printed.at(-1)).toMatch(/^Ended as expired: .+ \(funding_timeout\)$/);
  });

  test('scenarios lists every entry with its states, as text and as JSON, and asks the API of --url', async ({
    stack,
    partner,
  }) => {
    const { printed } = await run(scenarios, undefined);
    for (const { name } of SCENARIOS)
      expect(
        printed.some((line) => line.startsWith(`${name} `)),
        name,
      ).toBe(true);
    const [json = ''] = (await run(scenarios, undefined, '--json')).printed;
    expect(JSON.parse(json)).toHaveLength(SCENARIOS.length);
    expect((await run(scenarios, partner.apiKey, '--url', stack.baseUrl)).printed).toEqual(printed);
  });
});
