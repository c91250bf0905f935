/**
 * A worker without the right encryption key: a text that it cannot open is an error that Temporal retries, and never
 * counts as absent. With the key, the same step succeeds.
 */
import { randomBytes } from 'node:crypto';
import { describe, expect } from 'vitest';
import { type Activities, createActivities } from '../../activities/index.ts';
import type { GuardedAnswer } from '../../activities/providers/guarded-http.ts';
import { createSealer, type Sealer, type SealingKey } from '../../db/seal.ts';
import { activityDeps } from '../support/activity.ts';
import { type Caller, TEST_SECRETS, type TestApi } from '../support/api.ts';
import { linkAccount } from '../support/bankledger.ts';
import { cardprocBody, sendCardproc } from '../support/cardproc.ts';
import { challenge } from '../support/consumer.ts';
import { FILE, withApi } from '../support/fixture.ts';
import type { Steps } from '../support/settlement.ts';
import { ping, subscribe } from '../support/webhook.ts';

const DELIVERED: GuardedAnswer = {
  status: 200,
  error: null,
  bytes: 0,
  sha256: Buffer.alloc(32),
  retryAfter: undefined,
  durationMs: 1,
  lostMs: null,
};

const { encryption } = TEST_SECRETS;
const WRONG_KEYS: Record<string, SealingKey> = {
  'has another key alone': { id: 'other', key: randomBytes(32) },
  'has another key under the same id': { id: encryption.id, key: randomBytes(32) },
};

/** Codes are mailed only where a mail server is configured. */
const test = withApi({ config: { smtpUrl: 'smtp://127.0.0.1:1' } }).extend(
  'activitiesWith',
  FILE,
  ({ api, port }) =>
    (sealer: Sealer): Activities =>
      createActivities({
        ...activityDeps(api, `http://127.0.0.1:${port}`),
        sealer,
        guardedHttp: { post: async () => DELIVERED },
        mailer: { send: async () => 'sent' },
      }),
);

type World = { readonly api: TestApi; readonly partner: Caller; readonly steps: Steps };
/** Prepares what the step needs, and returns the step. */
type Prepare = (world: World) => Promise<(activities: Activities) => Promise<unknown>>;

const ofSettlement = (settlementId: string, { partner }: World) => ({ settlementId, orgId: partner.orgId });

const STEPS: Record<string, readonly [prepare: Prepare, result: unknown]> = {
  "the plan of a card's collection": [
    async (world) => {
      const input = ofSettlement(await world.steps.waiting(), world);
      return ({ planCollection }) => planCollection(input);
    },
    [expect.objectContaining({ event: 'collection_succeeded' })],
  ],
  "the plan of an account's collection": [
    async (world) => {
      const account = await linkAccount(world.api, world.partner, 'public-sandbox-checking');
      const byAch = { payment_method: 'ach', card_token: undefined, banklink_account_token: account };
      const input = ofSettlement(await world.steps.waiting(byAch), world);
      return ({ planCollection }) => planCollection(input);
    },
    [expect.objectContaining({ event: 'collection_succeeded' })],
  ],
  "the provider's event": [
    async (world) => {
      const input = ofSettlement(await world.steps.waiting(), world);
      return ({ postCollectionEvent }) => postCollectionEvent({ ...input, step: 0 });
    },
    undefined,
  ],
  'the screening of the payee': [
    async (world) => {
      const input = world.steps.step(await world.steps.accept());
      return ({ admitSettlement }) => admitSettlement(input);
    },
    expect.objectContaining({ status: 'awaiting_funds' }),
  ],
  'the delivery of an event': [
    async ({ api, partner }) => {
      const { webhook_id: webhookId } = await subscribe(api, partner, 'http://127.0.0.1:9999/hook');
      await ping(api, partner, webhookId);
      // What a lane could not make ready waits for the subscription's workflow.
      await api.connection.pool.query('UPDATE webhook_deliveries SET lane_key = NULL WHERE webhook_id = $1', [
        webhookId,
      ]);
      const input = { webhookId, orgId: partner.orgId, nowMs: Date.now() };
      return ({ deliverRetries }) => deliverRetries(input);
    },
    expect.objectContaining({ waitMs: null }),
  ],
  'the mail with a code': [
    async ({ api }) => {
      const { id: challengeId } = await challenge(api);
      return ({ sendOtp }) => sendOtp({ challengeId });
    },
    { outcome: 'sent' },
  ],
};

describe.each(Object.entries(WRONG_KEYS))('a worker that %s', (_name, key) => {
  test.for(Object.entries(STEPS))(
    'fails and is retried: %s',
    async ([_step, [prepare, result]], { api, partner, steps, activitiesWith }) => {
      const step = await prepare({ api, partner, steps });
      await expect(step(activitiesWith(createSealer([key])))).rejects.toMatchObject({
        type: 'dependency:SEALED_TEXT_UNREADABLE',
        nonRetryable: false,
      });
      const done = await step(activitiesWith(api.deps.sealer));
      expect(done).toEqual(result);
    },
  );
});

test("a settlement whose collection has begun needs the payer's token no more: without it, it settles", async ({
  api,
  steps,
}) => {
  const id = await steps.waiting({ card_token: 'tok_manual' });
  await api.connection.pool.query("UPDATE settlements SET payment_token_sealed = 'lost' WHERE settlement_id = $1", [
    id,
  ]);
  await sendCardproc(api, cardprocBody(id));
  expect(await steps.activities.sendPayout(steps.step(id))).toMatchObject({ status: 'settled' });
});
