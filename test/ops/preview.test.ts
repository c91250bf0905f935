/** Without `--yes` a change is only shown: the same checks, the same sentence, and nothing is written. */
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { whileLocked } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { insertGateEvidence } from '../support/gate.ts';
import { createOps, recordKeys } from '../support/ops.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { openSettlement } from '../support/settlement.ts';
import { ping, subscribe } from '../support/webhook.ts';

const AUDIT_ARGS = ['--operator', 'ana', '--note', 'why'];

const test = withApi()
  .extend('ops', FILE, ({ api }) => createOps(api.connection.db))
  .extend('ids', FILE, async ({ api, partner }) => {
    const { webhook_id: webhookId } = await subscribe(api, partner, 'http://127.0.0.1:9999/');
    const settlement = await openSettlement(api, partner);
    const reviewed = await openSettlement(api, partner, ['awaiting_funds', 'funded', 'paying_out', 'needs_review']);
    // Recorded evidence without two approvals closes the gates, so it comes last.
    const [evidenceId = ''] = await insertGateEvidence(api.connection.db, 'local sandbox', { operators: ['bo'] });
    return {
      organization: partner.orgId,
      settlement,
      reviewed,
      delivery: (await ping(api, partner, webhookId)).delivery_id as string,
      evidence: evidenceId,
    };
  });

type Ids = Readonly<Record<'organization' | 'settlement' | 'reviewed' | 'delivery' | 'evidence', string>>;

test.for<[string, (ids: Ids) => string[], (ids: Ids) => string]>([
  ['cancel', ({ settlement }) => ['cancel', settlement], ({ settlement }) => `${settlement} is canceled.`],
  [
    'redispatch',
    ({ settlement }) => ['redispatch', settlement],
    ({ settlement }) => `${settlement} will be started or signalled.`,
  ],
  ['redispatch --all', () => ['redispatch', '--all'], () => 'settlements: 2 will be started or signalled.'],
  ['resolve', ({ reviewed }) => ['resolve', reviewed, 'paid'], ({ reviewed }) => `${reviewed} is settled.`],
  [
    'retry-delivery',
    ({ delivery }) => ['retry-delivery', delivery],
    ({ delivery }) => `${delivery} will be attempted again.`,
  ],
  ['gate approve', ({ evidence }) => ['gate', 'approve', evidence], ({ evidence }) => `${evidence} approved by ana.`],
  [
    'gate revoke',
    ({ evidence }) => ['gate', 'revoke', evidence],
    ({ evidence }) =>
      `${evidence} revoked by ana; its gate has no evidence any more, which the local sandbox forgives.`,
  ],
  [
    'org tier',
    ({ organization }) => ['org', 'tier', organization, 'starter'],
    ({ organization }) => `${organization} has the tier starter, from its next request on.`,
  ],
  [
    'limit set',
    ({ organization }) => ['limit', 'set', organization, 'recipients', '5'],
    ({ organization }) => `${organization} has recipients 5, from its next request on.`,
  ],
  ['keys record', () => ['keys', 'record'], () => 'Recorded: ENCRYPTION_KEYS from nothing recorded to test-1.'],
])('the preview changes nothing: %s', async ([, argsOf, sentenceOf], { api, ops, ids }) => {
  await expectUnchanged(api.connection.pool, async () => {
    const asText = await ops(...argsOf(ids), ...AUDIT_ARGS);
    const asJson = await ops(...argsOf(ids), ...AUDIT_ARGS, '--json');
    expect(asText.printed[0]).toBe(`Preview: ${sentenceOf(ids)}`);
    expect(JSON.parse(asJson.printed.join(''))).toEqual({ preview: expect.anything() });
    const hint = ['Nothing was changed. Repeat the command with --yes to do it.'];
    expect([asText.exitCode, asJson.exitCode, asText.warned, asJson.warned]).toEqual([3, 3, hint, hint]);
  });
});

test('the preview of gate record says what would be recorded', async ({ api, ops }) => {
  const file = fileURLToPath(import.meta.url);
  await expectUnchanged(api.connection.pool, async () => {
    const args = ['gate', 'record', 'dispute_accounting', '--corridor', 'US-JM', '--evidence', file];
    const { exitCode, printed } = await ops(...args, '--expires', '2099-01-01', '--operator', 'ana');
    expect(exitCode).toBe(3);
    expect(printed[0]).toMatch(/^Preview: .* recorded for dispute_accounting on US-JM/);
  });
});

test('the preview of redispatch --all waits for no other command, so none waits for it', async ({ api, ops, ids }) => {
  const audit = `SELECT pg_advisory_xact_lock(hashtextextended('audit_entries', 0))`;
  const run = () => ops('redispatch', '--all', ...AUDIT_ARGS);
  const { exitCode, printed } = await whileLocked(api.owner.pool, audit, run);
  const open = [ids.settlement, ids.reviewed].length;
  expect([exitCode, printed[0]]).toEqual([3, `Preview: settlements: ${open} will be started or signalled.`]);
});

test('keys reseal shows what still needs an older key', async ({ api, ops }) => {
  await recordKeys(api.connection.db);
  await expectUnchanged(api.connection.pool, async () => {
    const { exitCode, printed } = await ops('keys', 'reseal', ...AUDIT_ARGS);
    expect([exitCode, printed[0]?.startsWith('ENCRYPTION_KEYS: ')]).toEqual([3, true]);
  });
});

test.for<[string, (ids: Ids) => string[]]>([
  ['cancel of a settlement in review', ({ reviewed }) => ['cancel', reviewed]],
  ['resolve of a settlement that is not in review', ({ settlement }) => ['resolve', settlement, 'paid']],
  ['approval of unknown evidence', () => ['gate', 'approve', 'no-such-id']],
])('the preview refuses what the command would refuse: %s', async ([, argsOf], { api, ops, ids }) => {
  await expectUnchanged(api.connection.pool, async () => {
    expect(await ops(...argsOf(ids), ...AUDIT_ARGS)).toMatchObject({
      exitCode: 1,
      printed: [],
      warned: [expect.anything()],
    });
  });
});
