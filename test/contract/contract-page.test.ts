/** docs/contract.md: every section that a comment cites exists, and what it names and counts is what the code has. */
import { describe, expect, test } from 'vitest';
import { STATUS_OF } from '../../api/http/error-handler.ts';
import { IN_FLIGHT as REQUESTS } from '../../api/plugins/in-flight.ts';
import { ACTIVE_KEYS_MAX } from '../../domain/api-key.ts';
import { CORRIDORS, DELIVERY_MINUTES, RAILS } from '../../domain/corridor.ts';
import { ERROR_CODES } from '../../domain/error.ts';
import { EVENT_TYPES } from '../../domain/event.ts';
import { type FeeRule, INPUT_FEE_RULES, PLATFORM_FEE_RULE } from '../../domain/fee.ts';
import { GATES } from '../../domain/gate.ts';
import { formatMoney, formatRate } from '../../domain/money.ts';
import { OTP_LIMITS } from '../../domain/otp.ts';
import { COUNTED_MAX, PAGE } from '../../domain/page.ts';
import { INPUT_METHODS, METHOD_RULES } from '../../domain/payment-method.ts';
import { REQUEST_WEIGHTS } from '../../domain/rate-limit.ts';
import { SCOPES } from '../../domain/scope.ts';
import {
  PURPOSES,
  SETTLEMENT_STATUSES,
  TERMINAL_STATUSES,
  TRANSITIONS,
  VERIFICATION_THRESHOLD_MINOR,
  waitWindowMs,
} from '../../domain/settlement/state.ts';
import { VERIFICATION_STATUSES, VERIFICATION_WINDOW_MS } from '../../domain/verification.ts';
import { WALLET_LIMITS, WALLET_NETWORKS } from '../../domain/wallet.ts';
import {
  ATTEMPTS_MAX,
  IN_FLIGHT,
  REDELIVERIES_MAX,
  REPLAY_STEP,
  RETRY_DELAYS_MS,
  SUBSCRIPTIONS_MAX,
} from '../../domain/webhook.ts';
import { TARGET_LENGTH_MAX } from '../../domain/webhook-target.ts';
import { readSource, sourceFiles } from '../support/source.ts';
import { codes, rowsOf } from './page-text.ts';

const PAGE_TEXT = readSource('docs/contract.md');
const SECTIONS = new Map(
  PAGE_TEXT.split(/^## (?=\d+\. )/m)
    .slice(1)
    .map((text) => [Number.parseInt(text, 10), text.replaceAll(/\s*\n(?!\n|[|-])\s*/g, ' ')]),
);
const section = (number: number): string => SECTIONS.get(number) ?? '';

/** The cells of each row of a section's tables, without the headings. */
const rows = (number: number): string[][] => rowsOf(section(number));

/** "10 000": with a space between thousands, as the page writes numbers. */
const spaced = (count: number | bigint): string => String(count).replaceAll(/\B(?=(\d{3})+(?!\d))/g, ' ');
const money = (minor: bigint | undefined): string => {
  if (!minor) return '';
  const [whole = '', digits = ''] = formatMoney(minor, 'USD').split('.');
  return `${spaced(BigInt(whole))}.${digits}`;
};
const days = (milliseconds: number | undefined): number => (milliseconds ?? 0) / (24 * 60 * 60_000);

test('every section that the repository cites exists', () => {
  const cited = ['.ts', '.sql', '.md', '.py'].flatMap((extension) =>
    sourceFiles(extension).flatMap((file) =>
      [...readSource(file).matchAll(/contract ((?:§\d+(?:,? (?:and )?)?)+)/g)].flatMap(([, list = '']) =>
        (list.match(/\d+/g) ?? []).map((number) => ({ file, number: Number(number) })),
      ),
    ),
  );
  expect(cited.length).toBeGreaterThan(200);
  expect(cited.filter(({ number }) => !SECTIONS.has(number))).toEqual([]);
  expect([...SECTIONS.keys()]).toEqual(Array.from({ length: 16 }, (_, index) => index + 1));
});

test('every address that it names is one of the OpenAPI document, a page or a service route', () => {
  const { paths }: { paths: Record<string, unknown> } = JSON.parse(readSource('docs/openapi.json'));
  const others = ['/docs', '/status', '/metrics', '/problems/<code>', '/openapi.json', '/health/live', '/health/ready'];
  const named = codes(PAGE_TEXT)
    .map((code) => code.replace(/^(GET|POST|PUT|PATCH|DELETE) /, ''))
    .filter((code) => /^\/[a-z.]/.test(code) && !code.endsWith('/'));
  expect(named.length).toBeGreaterThan(25);
  expect(named.filter((address) => !(address in paths) && !others.includes(address))).toEqual([]);
});

test('§2 lists every code of a refusal with its status, and no other', () => {
  const listed = rows(2)
    .slice(1)
    .flatMap(([status = '', code = '']) => codes(code).map((name) => `${status} ${name}`));
  const expected = ERROR_CODES.map((code) => `${STATUS_OF[code]} ${code}`);
  expect(new Set(listed)).toEqual(new Set(expected));
  expect(listed).toHaveLength(expected.length);
});

test('§3 lists the scopes', () => {
  expect(rows(3).flatMap(([scope = '']) => codes(scope))).toEqual([...SCOPES]);
  expect(ACTIVE_KEYS_MAX).toBe(100);
});

describe('§5', () => {
  test('has the corridors with their currencies, rates and rails', () => {
    const expected = Object.values(CORRIDORS).map((corridor) => [
      `\`${corridor.id}\``,
      `${corridor.sourceCurrency}→${corridor.destinationCurrency}`,
      formatRate(corridor.rateMillionths),
      corridor.rails.map((rail) => `\`${rail}\``).join(' '),
    ]);
    expect(rows(5).filter(([id = '']) => /^`[A-Z]{2}-[A-Z]{2}`$/.test(id))).toEqual(expected);
  });

  test.each(RAILS)('has the minutes of %s', (rail) => {
    const { min, max } = DELIVERY_MINUTES[rail];
    expect(section(5)).toMatch(new RegExp(`${min} (minutes )?to ${max} (minutes )?by \`${rail}\``));
  });

  test('has the fees', () => {
    const row = (name: string, { basisPoints, fixedMinor, minimumMinor, maximumMinor }: FeeRule) => [
      name,
      basisPoints === 0n ? '' : `${(Number(basisPoints) / 100).toFixed(2)} %`,
      ...[fixedMinor, minimumMinor, maximumMinor].map(money),
    ];
    const expected = [
      ...(['card', 'ach', 'wire'] as const).map((method) =>
        row(`\`input_fee\`, \`${method}\``, INPUT_FEE_RULES[method]),
      ),
      row('`platform_fee`', PLATFORM_FEE_RULE),
    ];
    expect(rows(5).filter(([name = '']) => name.includes('_fee`'))).toEqual(expected);
  });

  test('has the bounds and the currencies of each method', () => {
    const expected = (['card', 'ach', 'wire'] as const).map((method) => {
      const { minimumMinor, maximumMinor, sourceCurrencies } = METHOD_RULES[method];
      return [`\`${method}\``, `${money(minimumMinor)} to ${money(maximumMinor)}`, sourceCurrencies.join(' ')];
    });
    const listed = rows(5).filter(([name = '']) => INPUT_METHODS.some((method) => name === `\`${method}\``));
    expect(listed).toEqual(expected);
  });
});

describe('§6', () => {
  test('has every transition, and no other', () => {
    const listed = rows(6).flatMap(([from = '', , to = '']) => {
      const sources = codes(from).length > 0 ? codes(from) : [null];
      return sources.flatMap((source) => codes(to).map((target) => `${source} → ${target}`));
    });
    const expected = TRANSITIONS.map(({ from, to }) => `${from} → ${to}`);
    expect(new Set(listed)).toEqual(new Set(expected));
  });

  test('names every state, the terminal ones, and every purpose', () => {
    const named = new Set(codes(section(6)));
    expect([...SETTLEMENT_STATUSES, ...PURPOSES, ...INPUT_METHODS].filter((name) => !named.has(name))).toEqual([]);
    const [, terminal = ''] = /(`settled`[^.|→]*) are terminal/.exec(section(6)) ?? [];
    expect(codes(terminal)).toEqual([...TERMINAL_STATUSES]);
  });

  test('has the windows and the amount from which a recipient must be verified', () => {
    expect(section(6)).toContain(`${days(waitWindowMs('compliance_hold', 'card'))} days without a decision`);
    expect(section(6)).toContain(`${days(waitWindowMs('paying_out', 'card'))} days without an outcome`);
    const [card, ach, wire] = (['card', 'ach', 'wire'] as const).map((method) => METHOD_RULES[method].fundingWindowMs);
    const windows = `card ${(card ?? 0) / 60_000} minutes, ACH ${days(ach)} days, wire ${days(wire)} days`;
    expect(section(6)).toContain(windows);
    expect(section(6)).toContain(`${money(VERIFICATION_THRESHOLD_MINOR)} or more`);
  });
});

test('§8 names the states of a verification and its window', () => {
  expect(VERIFICATION_STATUSES.filter((status) => !codes(section(8)).includes(status))).toEqual([]);
  expect(section(8)).toContain(`open for ${days(VERIFICATION_WINDOW_MS)} days`);
});

test('§11 lists the event types', () => {
  const listed = codes(section(11)).filter((code) =>
    /^(settlement|certificate|verification|recipient|api_key|webhook)\./.test(code),
  );
  expect(new Set(listed)).toEqual(new Set(EVENT_TYPES));
  expect(listed).toHaveLength(EVENT_TYPES.length);
});

test('§13 and §14 have the networks and the gates', () => {
  expect(codes(section(13))).toEqual(expect.arrayContaining([...WALLET_NETWORKS]));
  expect(GATES.filter((gate) => !codes(section(14)).includes(gate))).toEqual([]);
});

test('§16 names variables that config/, or the SDK’s own configuration, reads', () => {
  const read = `${readSource('config/environment.ts')}${readSource('process/temporal.ts')}`;
  const ofTheSdk = ['TEMPORAL_ADDRESS', 'TEMPORAL_NAMESPACE', 'TEMPORAL_API_KEY'];
  const named = codes(section(16)).filter((code) => /^[A-Z][A-Z_]+$/.test(code));
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((name) => !read.includes(name) && !ofTheSdk.includes(name))).toEqual([]);
});

const { limitMin, limitMax, limitDefault, offsetMax } = PAGE;
const delay = (milliseconds: number): string => {
  const seconds = milliseconds / 1_000;
  return seconds < 60 ? `${seconds} s` : seconds < 3_600 ? `${seconds / 60} min` : `${seconds / 3_600} h`;
};

test.each([
  [1, `\`limit\` is ${limitMin} to ${limitMax}, by default ${limitDefault}; \`offset\` is 0 to ${spaced(offsetMax)}.`],
  [1, `exact up to ${spaced(COUNTED_MAX)} matches`],
  [
    2,
    `More than ${REQUESTS.ofOrganization} requests of an organization, or ${REQUESTS.ofAddress} of an address, under way`,
  ],
  [2, `a PDF, a read of usage or a sign-up costs ${REQUEST_WEIGHTS.usage}`],
  [11, `at most ${SUBSCRIPTIONS_MAX}.`],
  [11, `up to ${TARGET_LENGTH_MAX} characters`],
  [11, `after ${RETRY_DELAYS_MS.map(delay).join(', ')}`],
  [11, `${ATTEMPTS_MAX} attempts`],
  [11, `${IN_FLIGHT.first} requests to one subscription are in flight, up to ${IN_FLIGHT.most} `],
  [11, `steps of ${REPLAY_STEP} deliveries`],
  [11, `at most ${REDELIVERIES_MAX} times in 24 hours`],
  [
    12,
    `${OTP_LIMITS.codeDigits} digits, is valid for ${OTP_LIMITS.validityMs / 60_000} minutes and ${OTP_LIMITS.triesMax}`,
  ],
  [12, `a contact gets ${OTP_LIMITS.requestsMax} in an hour`],
  [13, `1 to ${WALLET_LIMITS.nameLengthMax} characters, 1 to ${WALLET_LIMITS.signersMax} distinct`],
])('the contract\'s §%i says "%s"', (number, sentence) => {
  expect(section(number)).toContain(sentence);
});
