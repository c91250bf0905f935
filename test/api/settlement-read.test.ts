/**
 * Every read of a settlement is one snapshot: its row, its timeline and its exceptions are those of one moment, while
 * other transactions change all of them.
 */
import { sql } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { recordEvidence } from '../../db/commands/evidence.ts';
import { lockSettlement } from '../../db/queries/settlement.ts';
import type { NewEvidence } from '../../domain/settlement/evidence.ts';
import type { Settlement } from '../../domain/settlement/state.ts';
import type { TestApi } from '../support/api.ts';
import {
  type ConsumerCaller,
  callAs,
  createConsumerRecipient,
  signIn,
  transfer,
  transferBody,
} from '../support/consumer.ts';
import { untilBlocked } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { type Json, jsonOf } from '../support/partner.ts';
import { BY_WIRE, moveSettlement } from '../support/settlement.ts';

const test = withApi().extend('consumer', FILE, ({ api }) => signIn(api));

const lastStatus = (settlement: Json): string => settlement.timeline.at(-1).status;

/**
 * Reads a settlement while a transaction holds its timeline, moves the settlement and then commits. A read by two
 * statements would see the row before the move and the timeline after it.
 */
async function readDuringMove(
  api: TestApi,
  { orgId, settlementId }: { readonly orgId: string; readonly settlementId: string },
  read: () => Promise<Json>,
): Promise<Json> {
  return await api.owner.db
    .transaction(async (tx) => {
      await tx.execute(sql`LOCK TABLE settlement_transitions IN ACCESS EXCLUSIVE MODE`);
      const reading = read();
      await untilBlocked(api.connection.pool, 1);
      const settlement = await lockSettlement(tx, orgId, settlementId);
      await moveSettlement(tx, settlement, { to: 'awaiting_funds', at: new Date(), reason: 'test' });
      // In an object, so that the transaction does not wait for the read.
      return { reading };
    })
    .then(({ reading }) => reading);
}

describe("a partner's read", () => {
  const read = (path: (id: string) => string, headers: Record<string, string> = {}) => ({ path, headers });
  test.for([
    ['GET /v2/settle/{id}', read((id) => `/v2/settle/${id}`)],
    ['GET /v2/settle/{id} that waits', read((id) => `/v2/settle/${id}`, { prefer: 'wait=1' })],
    ['GET /v1/caribbean/settlements/{id}', read((id) => `/v1/caribbean/settlements/${id}`)],
    ['GET /v1/caribbean/settlements', read(() => '/v1/caribbean/settlements?limit=1')],
  ] as const)('shows one moment when it is read by %s', async ([_name, { path, headers }], { api, partner, steps }) => {
    const settlementId = await steps.accept();
    const shown = await readDuringMove(api, { orgId: partner.orgId, settlementId }, async () =>
      [jsonOf(await api.call(partner, 'GET', path(settlementId), undefined, headers))].flat().at(0),
    );
    expect(shown.settlement_id).toBe(settlementId);
    expect(lastStatus(shown)).toBe(shown.status);
  });
});

describe("a consumer's read", () => {
  const accept = async (api: TestApi, consumer: ConsumerCaller): Promise<Json> =>
    jsonOf(await transfer(api, consumer, transferBody(await createConsumerRecipient(api, consumer))));

  test.for([
    ['GET /consumer/transfers/{id}', (id: string) => `/consumer/transfers/${id}`],
    ['GET /consumer/transfers', () => '/consumer/transfers'],
  ] as const)('shows one moment when it is read by %s', async ([_name, path], { api, consumer }) => {
    const { transfer_id: transferId, settlement_id: settlementId } = await accept(api, consumer);
    const shown = await readDuringMove(api, { orgId: consumer.consumerId, settlementId }, async () =>
      [jsonOf(await callAs(api, consumer, 'GET', path(transferId)))].flat().at(0),
    );
    expect(shown.transfer_id).toBe(transferId);
    expect(lastStatus(shown)).toBe(shown.status);
  });
});

describe('the answer of a cancellation', () => {
  test('shows late money and its exception together', async ({ api, partner, steps }) => {
    const id = await steps.waiting(BY_WIRE);
    const cancel = () => api.call(partner, 'POST', `/v2/settle/${id}/cancel`);
    await cancel();
    const canceled = await api.owner.db
      .transaction(async (tx) => {
        // Only the read of the answer waits: the decision needs no transitions.
        await tx.execute(sql`LOCK TABLE settlement_transitions IN ACCESS EXCLUSIVE MODE`);
        const canceling = cancel();
        await untilBlocked(api.connection.pool, 1);
        const settlement = await lockSettlement(tx, partner.orgId, id);
        await recordEvidence(tx, { settlement, exceptions: [] }, lateWire(settlement), {
          at: new Date(),
          requestId: 'test',
        });
        return { canceling };
      })
      .then(({ canceling }) => canceling);
    const { amount_received: received, exceptions } = jsonOf(canceled);
    expect([canceled.statusCode, received, exceptions.map(({ amount }: Json) => amount)]).toEqual([
      200,
      '250.00',
      ['250.00'],
    ]);
  });
});

const lateWire = ({ settlementId, amountMinor, sourceCurrency }: Settlement): NewEvidence => ({
  evidenceId: crypto.randomUUID(),
  provider: 'bankledger',
  eventId: `late:${settlementId}`,
  kind: 'collection_succeeded',
  amountMinor,
  currency: sourceCurrency,
  failure: null,
  sha256: '00'.repeat(32),
});
