/** docs/guides: what the guides name and count is what the code has. */
import { describe, expect, test } from 'vitest';
import { STATUS_OF } from '../../api/http/error-handler.ts';
import { GUIDES } from '../../api/pages/guide.ts';
import { ERROR_CODES } from '../../domain/error.ts';
import { EVENT_OF_STATUS, EVENT_TYPES } from '../../domain/event.ts';
import { FAILURE_HELP, failureAddress, PROVIDER_FAILURE_HELP, sectionId } from '../../domain/failure-help.ts';
import { SANDBOX_NAMES, SANDBOX_REVIEWS } from '../../domain/sandbox/input.ts';
import { SCENARIOS } from '../../domain/sandbox/scenario.ts';
import { EXCEPTIONS_SHOWN_MAX } from '../../domain/settlement/evidence.ts';
import { FAILURES } from '../../domain/settlement/failure.ts';
import { SETTLEMENT_STATUSES } from '../../domain/settlement/state.ts';
import {
  ATTEMPTS_MAX,
  DELIVERY_STATUSES,
  DISABLED_REASONS,
  REDELIVERIES_MAX,
  SUBSCRIPTIONS_MAX,
} from '../../domain/webhook.ts';
import { readSource } from '../support/source.ts';
import { OPERATIONS } from './operations.ts';
import { codes, rowsOf } from './page-text.ts';

const guide = (name: string): string => readSource(`docs/guides/${name}.md`);

test.each(GUIDES)('every address that $name names is an operation or a page', ({ name }) => {
  const paths = new Set(OPERATIONS.map(({ path }) => path.replaceAll(/\{[a-z_]+\}/g, '{}')));
  const named = codes(guide(name))
    .map((code) => /^(?:GET|POST|PUT|PATCH|DELETE) (\/[^ ?]+)/.exec(code)?.[1] ?? '')
    .filter((address) => address.startsWith('/v') || address.startsWith('/consumer'));
  expect(named.filter((address) => !paths.has(address.replaceAll(/\{[a-z_]+\}|<[a-z_]+>/g, '{}')))).toEqual([]);
});

test('the guide about errors lists every code of a refusal with its status, and no other', () => {
  const listed = rowsOf(guide('errors')).flatMap(([status = '', names = '']) =>
    codes(names).map((name) => `${status.trim()} ${name}`),
  );
  expect(new Set(listed)).toEqual(new Set(ERROR_CODES.map((code) => `${STATUS_OF[code]} ${code}`)));
});

test('the guide about retries lists the operations that need a key, and names each other one that takes a key', () => {
  const [section = ''] = guide('retries').split('## Where keys count\n').slice(1);
  const required = OPERATIONS.filter(({ idempotencyKey }) => idempotencyKey === 'required').map(
    ({ method, path }) => `${method} ${path}`,
  );
  expect(new Set(codes(section.split(' need a key')[0] ?? ''))).toEqual(new Set(required));
  const words: Record<string, string> = {
    '/v1/caribbean/settle': 'POST /v1/caribbean/settle',
    '/v1/recipients': 'recipient',
    '/consumer/recipients': "a consumer's too",
    '/v1/orgs/{org_id}/keys': 'an API key',
    '/v1/orgs/keys/{key_id}/rotate': 'rotation of an API key',
    '/v1/kyc/verify': 'a verification',
    '/v1/kyc/idverify/applicant': 'an applicant',
    '/v1/wallets': 'a wallet',
    '/v1/webhooks': 'a webhook',
    '/v1/webhooks/{webhook_id}/rotate-secret': "of a webhook's secret",
    '/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver': 'a redelivery',
    '/v1/webhooks/{webhook_id}/replay': 'a replay',
  };
  const optional = OPERATIONS.filter(({ idempotencyKey }) => idempotencyKey === 'optional').map(({ path }) => path);
  expect(new Set(optional)).toEqual(new Set(Object.keys(words)));
  const text = section.replaceAll('\n', ' ');
  expect(Object.values(words).filter((word) => !text.includes(word))).toEqual([]);
});

test.each([['docs/guides/webhooks.md'], ['clients/typescript/README.md'], ['clients/python/README.md']])(
  '%s: the highest sequence is the state, and each other event of a settlement is a fact that is handled once',
  (page) => {
    const paragraphs = readSource(page)
      .split('\n\n')
      .map((text) => text.replaceAll(/\n */g, ' '));
    const rule = paragraphs.filter((text) => /state.*highest `sequence`|A fact\b/.test(text)).join();
    const states: readonly string[] = Object.values(EVENT_OF_STATUS);
    const facts = EVENT_TYPES.filter((type) => type.startsWith('settlement.') && !states.includes(type));
    expect(facts.filter((type) => !codes(rule).includes(type))).toEqual([]);
    expect(rule).toContain('lower `sequence`');
  },
);

describe('webhooks', () => {
  const text = guide('webhooks');

  test('lists the event types', () => {
    const listed = rowsOf(text).flatMap(([prefix = '', types = '']) => {
      const [start = ''] = codes(prefix);
      return start.endsWith('.') ? codes(types.split(',')[0] ?? '').map((type) => `${start}${type}`) : [];
    });
    expect(new Set(listed)).toEqual(new Set(EVENT_TYPES));
  });

  test('lists the statuses of a delivery and why a subscription is disabled', () => {
    const listed = rowsOf(text).map(([status = '']) => codes(status)[0]);
    expect(DELIVERY_STATUSES.filter((status) => !listed.includes(status))).toEqual([]);
    expect(DISABLED_REASONS.filter((reason) => !codes(text).includes(reason))).toEqual([]);
  });

  test('has the limits', () => {
    for (const sentence of [
      `at most ${SUBSCRIPTIONS_MAX} subscriptions`,
      `${ATTEMPTS_MAX} attempts`,
      `start again ${REDELIVERIES_MAX} times in 24 hours`,
      `the latest ${EXCEPTIONS_SHOWN_MAX} `,
    ])
      expect(text.replaceAll('\n', ' ')).toContain(sentence);
  });

  test('keeps a late fact: the rule about the highest sequence is for the state alone', () => {
    const rule = text.replaceAll(/\s+/g, ' ');
    for (const fact of ['settlement.exception', 'settlement.funds_received', 'settlement.refunded'])
      expect(/A fact\*\* is ([^:]*):/.exec(rule)?.[1]).toContain(`\`${fact}\``);
    expect(rule).not.toContain('ignore the `data` of events');
  });
});

test("a settlement's life: every status, with what is to be done", () => {
  const listed = rowsOf(guide('settlement')).flatMap(([status = '']) => codes(status));
  expect(listed).toEqual(expect.arrayContaining([...SETTLEMENT_STATUSES]));
});

test('the quickstart lists every card, account and name by which the sandbox decides', () => {
  const tokens = SCENARIOS.flatMap(({ given: { card_token: card, public_token: account } }) => [
    card ?? [],
    account ?? [],
  ]);
  const inputs = [...tokens.flat(), ...Object.values(SANDBOX_NAMES), ...Object.keys(SANDBOX_REVIEWS)];
  const listed = codes(rowsOf(guide('quickstart')).join(' '));
  expect(inputs.filter((input) => !listed.includes(input))).toEqual([]);
});

describe('failures', () => {
  test('explains every code with which this service ends a settlement', () => {
    expect(new Set(Object.keys(FAILURE_HELP))).toEqual(new Set(Object.values(FAILURES).map(({ code }) => code)));
  });

  test('says of none that nothing was collected: money is booked in every state', () => {
    expect(Object.values(FAILURE_HELP).filter(({ meaning }) => meaning.includes('Nothing was collected'))).toEqual([]);
  });

  test('has a section under the address of each failure, also of an unknown code', () => {
    const sections = [...guide('failures').matchAll(/^### (.+)$/gm)].map(([, heading = '']) => sectionId(heading));
    const unknown = ['do_not_honor', 'R29', 'constructor'];
    for (const code of [...Object.keys(FAILURE_HELP), ...Object.keys(PROVIDER_FAILURE_HELP), ...unknown])
      expect(sections).toContain(failureAddress(code).split('#')[1]);
  });
});
