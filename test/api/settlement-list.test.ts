/** The list of settlements: each combination of filters, in pages by cursor and by offset, against the rule in code. */
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { cursorText } from '../../domain/page.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { bankledgerBody, sendBankledger } from '../support/bankledger.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createRecipient, type Json, jsonOf, settle } from '../support/partner.ts';
import { BY_WIRE, enterStates } from '../support/settlement.ts';

const COUNT = 24;
const PAGE_SIZE = 5;

type Filters = {
  status?: string[] | undefined;
  corridor?: string | undefined;
  payment_method?: string | undefined;
  recipient_id?: number | undefined;
  reference?: string | undefined;
  created_from?: number | undefined;
  created_to?: number | undefined;
  metadata?: Record<string, string> | undefined;
};

/** The settlements of an organization, newest first, as its list shows them. */
async function createSettlements(api: TestApi, caller: Caller): Promise<Json[]> {
  const recipients = [await createRecipient(api, caller), await createRecipient(api, caller)];
  const ids: string[] = [];
  for (let index = 0; index < COUNT; index += 1) {
    const id = await settle(api, caller, {
      recipient_id: recipients[index % 2],
      corridor: index % 5 === 0 ? 'CA-JM' : 'US-JM',
      ...(index % 3 === 0 ? BY_WIRE : {}),
      ...(index % 4 === 0 ? {} : { reference: `invoice ${index % 3}` }),
      metadata: index % 2 === 0 ? { team: index % 4 === 0 ? 'a' : 'b', order: String(index % 6) } : {},
    });
    ids.push(id);
  }
  for (const [index, id] of ids.entries()) {
    if (index % 7 === 1) await enterStates(api, caller, id, ['canceled']);
    if (index % 7 === 2) await enterStates(api, caller, id, ['awaiting_funds']);
  }
  const listed = jsonOf(await api.call(caller, 'GET', '/v2/settlements?limit=100'));
  expect(listed.map((settlement: Json) => settlement.settlement_id)).toEqual(ids.reverse());
  return listed;
}

const test = withApi()
  .extend('owner', FILE, ({ api }) => api.createCaller('full'))
  .extend('settlements', FILE, ({ api, owner }) => createSettlements(api, owner));

const matches = (settlement: Json, filters: Filters, all: readonly Json[]): boolean =>
  (filters.status === undefined || filters.status.includes(settlement.status)) &&
  (filters.corridor === undefined || settlement.corridor === filters.corridor) &&
  (filters.payment_method === undefined || settlement.payment_method === filters.payment_method) &&
  (filters.recipient_id === undefined || settlement.recipient_id === all[filters.recipient_id]?.recipient_id) &&
  (filters.reference === undefined || settlement.reference === filters.reference) &&
  (filters.created_from === undefined || settlement.created_at >= all[filters.created_from]?.created_at) &&
  (filters.created_to === undefined || settlement.created_at < all[filters.created_to]?.created_at) &&
  Object.entries(filters.metadata ?? {}).every(([key, value]) => settlement.metadata[key] === value);

function queryOf(filters: Filters, all: readonly Json[]): URLSearchParams {
  const query = new URLSearchParams();
  const {
    status = [],
    corridor,
    payment_method,
    recipient_id,
    reference,
    created_from,
    created_to,
    metadata,
  } = filters;
  const single = {
    corridor,
    payment_method,
    recipient_id: recipient_id === undefined ? undefined : all[recipient_id]?.recipient_id,
    reference,
    created_from: created_from === undefined ? undefined : all[created_from]?.created_at,
    created_to: created_to === undefined ? undefined : all[created_to]?.created_at,
  };
  for (const value of status) query.append('status', value);
  for (const [name, value] of Object.entries(single)) if (value !== undefined) query.set(name, value);
  for (const [key, value] of Object.entries(metadata ?? {})) query.set(`metadata[${key}]`, value);
  return query;
}

/** The ids of all pages, and what each page says about the number of all. */
async function readPages(
  api: TestApi,
  caller: Caller,
  first: URLSearchParams,
): Promise<{ ids: string[]; totals: Set<string> }> {
  const ids: string[] = [];
  const totals = new Set<string>();
  for (let url: string | undefined = `/v2/settlements?${first}`; url !== undefined; ) {
    const page = await api.call(caller, 'GET', url);
    expect(page.statusCode, page.body).toBe(200);
    ids.push(...jsonOf(page).map((settlement: Json) => settlement.settlement_id));
    totals.add(String(page.headers['x-total-count']));
    url = /<([^>]+)>; rel="next"/.exec(String(page.headers['link']))?.[1];
  }
  return { ids, totals };
}

const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });
const filters: fc.Arbitrary<Filters> = fc.record({
  status: optional(
    fc.uniqueArray(fc.constantFrom('accepted', 'canceled', 'awaiting_funds', 'settled'), { minLength: 1 }),
  ),
  corridor: optional(fc.constantFrom('US-JM', 'CA-JM', 'US-TT')),
  payment_method: optional(fc.constantFrom('card', 'wire', 'internal')),
  recipient_id: optional(fc.nat({ max: COUNT - 1 })),
  reference: optional(fc.constantFrom('invoice 0', 'invoice 1', 'none')),
  created_from: optional(fc.nat({ max: COUNT - 1 })),
  created_to: optional(fc.nat({ max: COUNT - 1 })),
  metadata: optional(
    fc.constantFrom<Record<string, string>>({ team: 'a' }, { order: '2' }, { team: 'b', order: '0' }, { team: 'c' }),
  ),
});

describe('GET /v2/settlements', () => {
  test('200 with the number of all, and no item, after a cursor that is older than all of them', async ({
    api,
    owner,
    settlements,
  }) => {
    const after = cursorText({ at: new Date(0), id: 'none' });
    const page = await api.call(owner, 'GET', `/v2/settlements?after=${after}`);
    expect([jsonOf(page), page.headers['x-total-count']]).toEqual([[], String(settlements.length)]);
    const other = await api.createCaller();
    expect((await api.call(other, 'GET', `/v2/settlements?after=${after}`)).headers['x-total-count']).toBe('0');
    expect((await api.call(other, 'GET', '/v2/settlements')).headers['x-total-count']).toBe('0');
  });

  test('200 with exactly what the filters select, each once, newest first, by cursor and by offset', async ({
    api,
    owner,
    settlements,
  }) => {
    await fc.assert(
      fc.asyncProperty(filters, fc.boolean(), async (selection, isByOffset) => {
        const expected = settlements.filter((settlement) => matches(settlement, selection, settlements));
        const query = queryOf(selection, settlements);
        query.set('limit', String(PAGE_SIZE));
        if (isByOffset) query.set('offset', '0');
        const { ids, totals } = await readPages(api, owner, query);
        expect(ids).toEqual(expected.map(({ settlement_id }) => settlement_id));
        expect([...totals]).toEqual([String(expected.length)]);
      }),
      { numRuns: 80 },
    );
  });

  test('200 with the same list under the legacy name', async ({ api, owner, settlements }) => {
    const query = '?status=canceled&limit=100';
    const [current, legacy] = await Promise.all(
      ['/v2/settlements', '/v1/caribbean/settlements'].map((path) => api.call(owner, 'GET', `${path}${query}`)),
    );
    expect(jsonOf(current ?? expect.unreachable())).toEqual(settlements.filter(({ status }) => status === 'canceled'));
    expect(legacy?.body).toBe(current?.body);
  });

  test("200 without another organization's settlements, whatever is filtered", async ({ api, settlements }) => {
    const other = await api.createCaller('read');
    const { recipient_id, metadata } = settlements.find(({ metadata: { team } }) => team) ?? expect.unreachable();
    for (const query of ['', '?status=accepted', `?recipient_id=${recipient_id}`, `?metadata[team]=${metadata.team}`])
      expect(jsonOf(await api.call(other, 'GET', `/v2/settlements${query}`))).toEqual([]);
  });
});

test('a list has every settlement, whatever providers state that one has received', async ({ api, partner, steps }) => {
  const settlementId = await steps.waiting(BY_WIRE);
  const stated = { amount_reconciled: Number.MAX_SAFE_INTEGER };
  for (let event = 0; event < 12; event += 1)
    expect((await sendBankledger(api, bankledgerBody(settlementId, stated))).statusCode).toBe(200);
  const listed = await api.call(partner, 'GET', '/v2/settlements');
  expect([listed.statusCode, jsonOf(listed)], listed.body).toEqual([
    200,
    [expect.objectContaining({ settlement_id: settlementId, amount_received: '1080863910568918.92' })],
  ]);
});
