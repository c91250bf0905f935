/**
 * The service as separate processes: programs that die at crash points, and every part killed while partners settle.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { test as base, expect } from 'vitest';
import type { Retry } from '../../clients/typescript/index.ts';
import type { CrashPoint } from '../../domain/crash-point.ts';
import { cardSettlementBody, recipientBody, signUp } from '../../scripts/sandbox/partner.ts';
import { FILE } from '../support/fixture.ts';
import { inParallel } from '../support/parallel.ts';
import { PARTS } from '../support/process-stack.ts';
import { checkAtRest } from './check.ts';
import { settleByCard } from './crash-settlement.ts';
import { failuresOf, walk, walkAll } from './crash-walk.ts';
import type { World } from './crash-world.ts';
import { openProcessWorld } from './process-world.ts';
import { createTenant } from './tenant.ts';

/**
 * Where only a process that really dies leaves its traces: leases, heartbeats that stop, a connection that breaks. All
 * transactions, dispatches and requests use the same code; crash-point.test.ts ends each of them in its own process.
 */
const POINTS: readonly CrashPoint[] = [
  'settlement.begin_payout:after_commit',
  'webhook_post:after',
  'dispatch.settlement:after_claim',
  'settlement.cancel_as_operator:after_commit',
];

const SETTLEMENTS = 12;
const PACE_MS = 50;
const DOWN_MS = 500;
const CALLERS = 5;
const KILLS_AT = [4, 9];

const test = base.extend(
  'world',
  FILE,
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  async ({}, { onCleanup }) => {
    const world = await openProcessWorld();
    onCleanup(world.close);
    return world;
  },
);
test.beforeAll(({ world: _ }) => undefined);

test('a program dies at crash points of each kind, and what was accepted completes once', async ({ world }) => {
  expect(await walkAll(world, POINTS)).toEqual([]);
});

test('the walk finds a program that does not die, and an end that is not reached after a death', async ({ world }) => {
  const point = 'organization.create:after_commit';
  const loses = async ({ deps }: World) => {
    await createTenant(deps.http);
    throw new Error('it is lost');
  };
  const steps = [
    { point, program: 'api', pass: async () => undefined },
    { point: 'organization.create:before_commit', program: 'api', pass: loses },
  ] as const;
  const reasons = (await failuresOf([await walk(world, 'api', steps)])).map(({ reason }) => reason);
  expect(reasons).toContain('the program did not die there');
  expect(reasons).toContain('Error: it is lost');
});

// The API is killed twice below.
test.for(PARTS.filter((part) => part !== 'api'))(
  'kill -9 of the %s while twelve settlements are under way: all of them settle',
  async (part, { world }) => {
    const kill = async () => {
      await delay((SETTLEMENTS / 2) * PACE_MS);
      await world.stack.kill(part);
      await delay(DOWN_MS);
      await world.stack.start(part);
    };
    const settleLater = async (index: number) => {
      await delay(index * PACE_MS);
      await settleByCard(world);
    };
    await Promise.all([kill(), ...Array.from({ length: SETTLEMENTS }, (_, index) => settleLater(index))]);
  },
);

test('an API killed twice while the TypeScript client settles: each settlement is created once', async ({
  world: { stack },
}) => {
  const retried: string[] = [];
  const onRetry = ({ error }: Retry) => void retried.push(error.name);
  const { client } = await signUp({ baseUrl: stack.baseUrl, onRetry });
  const { recipient_id: recipientId } = await client.recipients.create(recipientBody());
  let kills: Promise<void> = Promise.resolve();
  const restart = async (): Promise<void> => {
    await stack.kill('api');
    await delay(DOWN_MS);
    await stack.start('api');
  };
  const accepted = await inParallel(Array(SETTLEMENTS).keys(), CALLERS, async (index) => {
    const body = cardSettlementBody(recipientId, { reference: `INV-${index}` });
    const created = client.settlements.create(body);
    if (KILLS_AT.includes(index)) kills = kills.then(restart);
    return (await created).settlement_id;
  });
  await kills;
  expect(retried).toContain('ConnectionFailed');
  const listed = [];
  for await (const { settlement_id: id } of client.settlements.list()) listed.push(id);
  expect(listed).toHaveLength(SETTLEMENTS);
  expect(new Set(listed)).toEqual(new Set(accepted));
  const ended = await Promise.all(accepted.map((id) => client.settlements.wait(id)));
  expect(new Set(ended.map(({ status }) => status))).toEqual(new Set(['settled']));
});

test('afterwards the database, Temporal and the subscribers agree, and each settlement settled once', async ({
  world: { databaseUrl, deps, listening, broken },
}) => {
  expect(await checkAtRest(databaseUrl, deps.temporal, listening)).toEqual([]);
  expect(broken).toEqual([]);
});
