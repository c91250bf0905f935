import { describe, expect } from 'vitest';
import { numberedEvent } from '../../db/queries/event.ts';
import { events } from '../../db/schema/index.ts';
import { cursorText } from '../../domain/page.ts';
import { type ExampleType, eventExample } from '../../domain/resource/event-example.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { withApi } from '../support/fixture.ts';
import { type Json, jsonOf } from '../support/partner.ts';

const test = withApi();

let sequence = 0;

type Recorded = { readonly at?: string; readonly type?: ExampleType; readonly objectId?: string };

/** The id of a new event, created at `at`. Its object has no row. */
async function recorded(
  api: TestApi,
  { orgId }: Caller,
  { at = '2026-11-21T08:00:00.000Z', type = 'settlement.accepted', objectId = 'stl_a' }: Recorded = {},
): Promise<string> {
  sequence += 1;
  const example = eventExample(type, { orgId, environment: 'local sandbox', now: new Date(at) });
  const event = {
    ...({ orgId, objectType: 'settlement', objectId: `${objectId}-${orgId}`, type, requestId: 'test' } as const),
    data: { ...example, metadata: { note: 'é "quoted"' } },
    at: new Date(at),
  };
  const row = { ...numberedEvent(event, sequence), createdAt: event.at };
  await api.connection.db.insert(events).values(row);
  return row.eventId;
}

const storedBody = async (api: TestApi, eventId: string): Promise<Buffer> => {
  const { rows } = await api.connection.pool.query<{ body: Buffer }>('SELECT body FROM events WHERE event_id = $1', [
    eventId,
  ]);
  return rows[0]?.body ?? Buffer.alloc(0);
};

const idsOf = (answer: Parameters<typeof jsonOf>[0]): string[] => jsonOf(answer).map(({ id }: Json) => id);

describe('GET /v1/events/{event_id}', () => {
  test('200 with exactly the stored bytes', async ({ api }) => {
    const caller = await api.createCaller('read');
    const eventId = await recorded(api, caller);
    const answer = await api.call(caller, 'GET', `/v1/events/${eventId}`);
    expect([answer.statusCode, answer.headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
    expect(answer.rawPayload).toEqual(await storedBody(api, eventId));
  });
});

describe('GET /v1/events', () => {
  test('200 with the stored bytes of the own events, newest first, in pages', async ({ api }) => {
    const caller = await api.createCaller('read');
    await recorded(api, await api.createCaller('read'));
    const ids: string[] = [];
    for (let second = 0; second < 5; second += 1)
      ids.unshift(await recorded(api, caller, { at: `2026-11-21T08:00:0${second}.000Z`, objectId: `stl_${second}` }));
    const seen: string[] = [];
    for (let url: string | undefined = '/v1/events?limit=2'; url !== undefined; ) {
      const page = await api.call(caller, 'GET', url);
      expect(page.headers['x-total-count']).toBe('5');
      const bodies = await Promise.all(idsOf(page).map((id) => storedBody(api, id)));
      expect(page.body).toBe(`[${bodies.join(',')}]`);
      seen.push(...idsOf(page));
      url = /<([^>]+)>; rel="next"/.exec(String(page.headers['link']))?.[1];
    }
    expect(seen).toEqual(ids);
  });

  test('200 with what every given filter selects', async ({ api }) => {
    const caller = await api.createCaller('read');
    const early = await recorded(api, caller, { at: '2026-11-20T08:00:00.000Z', objectId: 'stl_a' });
    const funded = await recorded(api, caller, {
      at: '2026-11-21T08:00:00.000Z',
      objectId: 'stl_a',
      type: 'settlement.funded',
    });
    const late = await recorded(api, caller, { at: '2026-11-22T08:00:00.000Z', objectId: 'stl_b' });
    const list = async (query: string) => idsOf(await api.call(caller, 'GET', `/v1/events?${query}`));
    expect(await list('type=settlement.accepted')).toEqual([late, early]);
    expect(await list('type=settlement.accepted&type=settlement.funded')).toEqual([late, funded, early]);
    expect(await list(`object_id=stl_a-${caller.orgId}`)).toEqual([funded, early]);
    expect(await list('created_from=2026-11-21T08:00:00Z')).toEqual([late, funded]);
    expect(await list('created_to=2026-11-21T08:00:00Z')).toEqual([early]);
    expect(await list('created_from=2026-11-20T10:00:00%2B02:00&created_to=2026-11-21T09:00:00Z')).toEqual([
      funded,
      early,
    ]);
    // A bound may have parts of a millisecond, as the clocks of callers have.
    expect(await list('created_from=2026-11-21T08:00:00.000001Z')).toEqual([late]);
    expect(await list('created_to=2026-11-21T08:00:00.000001Z')).toEqual([funded, early]);
    expect(await list('created_from=2026-11-21T08:00:00.000000Z')).toEqual([late, funded]);
    expect(await list('created_to=9999-12-31T23:59:59.999999Z')).toEqual([late, funded, early]);
    expect(await list(`object_id=stl_a-${caller.orgId}&type=settlement.settled`)).toEqual([]);
    // The lower one of two bounds counts, on a page too.
    const [before, behind] = ['2026-11-21T08:00:00.001Z', '2026-11-23T08:00:00.000Z'].map((at) =>
      cursorText({ at: new Date(at), id: late }),
    );
    expect(await list(`created_to=2026-11-22T08:00:00Z&after=${behind}`)).toEqual([funded, early]);
    expect(await list(`created_to=2026-11-23T08:00:00Z&after=${before}`)).toEqual([funded, early]);
  });
});
