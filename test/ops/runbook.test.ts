/**
 * Every operators' command that docs/operations.md, a guide or a next step names is one that the command line accepts.
 */
import { expect, test } from 'vitest';
import { Environment } from '../../config/environment.ts';
import { connect } from '../../db/client.ts';
import {
  type Advice,
  deliveryAdvice,
  lostRunAdvice,
  organizationAdvice,
  queuedAdvice,
  settlementAdvice,
  unservedAdvice,
} from '../../domain/operator-advice.ts';
import { requestsPerMinuteOf, TIERS } from '../../domain/quota.ts';
import { budgetsOf } from '../../domain/rate-limit.ts';
import { SETTLEMENT_STATUSES } from '../../domain/settlement/state.ts';
import { DELIVERY_STATUSES } from '../../domain/webhook.ts';
import { createOps } from '../support/ops.ts';
import { readSource, sourceFiles } from '../support/source.ts';

const pages = ['docs/operations.md', ...sourceFiles('.md').filter((file) => file.startsWith('docs/guides/'))];
const { db } = connect('postgresql://127.0.0.1:1/none', { poolSizeMax: 1, name: 'test', onIdleError: () => undefined });
const ops = createOps(db);

const commandsIn = (text: string): string[] =>
  [...text.matchAll(/npm run (?:--silent )?ops -- ([^`\n)]+)/g)]
    .map(([, command = '']) => command.trim())
    .filter((command) => command !== '…');

/** Of the placeholders that do not take any word. */
const VALUES: Readonly<Record<string, string>> = {
  '<percent>': '10',
  '<corridor>': 'US-JM',
  '<gate>': 'dispute_accounting',
  '<tier>': 'large',
  '<limit>': 'wallets',
  '<number>': '7',
  '<file>': 'package.json',
  '<date>': '2099-01-31',
  '<time since the backup>': '2h',
  '<age of the file>': '5min',
  '<last hash of before>': '0'.repeat(64),
};

/** As a person would type it: a value for each placeholder, one of several words. */
const argsOf = (command: string): string[] =>
  command
    .replaceAll(/<[^>]+>/g, (name) => VALUES[name] ?? 'value')
    .split(/\s+/)
    .map((word) => word.split('|')[0] ?? '');

const settlement = { settlementId: 'stl_1', recipientId: 'recipient', paymentMethod: 'card', until: null } as const;
const advices: Advice[] = [
  ...SETTLEMENT_STATUSES.flatMap((status) => [
    settlementAdvice({ ...settlement, status, isOverdue: false }),
    settlementAdvice({ ...settlement, status, isOverdue: true }),
  ]),
  ...DELIVERY_STATUSES.map((status) =>
    deliveryAdvice({ deliveryId: 'delivery', webhookId: 'webhook', status, isLate: true, isFailing: false }),
  ),
  lostRunAdvice('stl_1', true),
  lostRunAdvice('verification', false),
  queuedAdvice('ServiceError'),
  unservedAdvice({
    taskQueue: 'settlement',
    promoted: { deploymentName: 'worker', buildId: 'a' },
    polling: [undefined],
  }),
  organizationAdvice('organization', { hasFullKey: true, isSuspended: false }),
  organizationAdvice('organization', { hasFullKey: true, isSuspended: true }),
];

const commands = new Set([
  ...pages.flatMap((page) => commandsIn(readSource(page))),
  ...advices.flatMap(({ say, command }) => commandsIn(`${say}\n${command}`)),
]);

test('the runbook has commands to check', () => {
  expect(commands.size).toBeGreaterThan(15);
});

test.each([...commands])("the runbook's command is valid: %s", async (command) => {
  const { exitCode, warned } = await ops(...argsOf(command));
  expect([exitCode === 2, warned]).toEqual([false, warned]);
});

test('the runbook has the default of every rate limit', () => {
  const [, table = ''] = readSource('docs/operations.md').split('| limit | unit | default |\n');
  const shown = new Set((table.split('\n\n')[0] ?? '').match(/(?<=\()\d+(?=\))/g)?.map(Number));
  const perMinute = Environment.shape.RATE_LIMIT_PER_MINUTE.parse(undefined);
  const budgets = Object.values(budgetsOf(perMinute)).map(({ quota }) => quota);
  const ofTiers = TIERS.map((tier) => requestsPerMinuteOf({ tier, limits: {} }, perMinute));
  expect(shown).toEqual(new Set([...budgets, ...ofTiers]));
});
