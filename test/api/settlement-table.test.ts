/** Settlements as CSV (contract §1). */
import { describe, expect, vi } from 'vitest';
import { csvLine } from '../../api/http/csv.ts';
import { LOW_PRIORITY } from '../../api/plugins/turn.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createRecipient, type Json, jsonOf, settle } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { fillSettlements } from '../support/settlement-fill.ts';

const HOSTILE = '=HYPERLINK("https://evil.example","x")';

const test = withApi().extend('listed', FILE, async ({ api, partner }): Promise<Json[]> => {
  const recipientId = await createRecipient(api, partner);
  for (const reference of [HOSTILE, 'plain, with "quotes"', '-1+1', undefined]) {
    const metadata = reference ? { team: '@a' } : {};
    await settle(api, partner, { recipient_id: recipientId, reference, metadata });
  }
  return jsonOf(await api.call(partner, 'GET', '/v2/settlements'));
});

const table = (api: TestApi, caller: Caller, query = '') =>
  api.call(caller, 'GET', `/v2/settlements${query}`, undefined, { accept: 'text/csv' });

/** The cells of each line (RFC 4180). */
const cellsOf = (text: string): string[][] =>
  text
    .split('\r\n')
    .slice(0, -1)
    .map((line) =>
      [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(([, quoted, bare]) =>
        quoted === undefined ? (bare ?? '') : quoted.replaceAll('""', '"'),
      ),
    );

describe('GET /v2/settlements with Accept: text/csv', () => {
  test('200 with a header line, and the fields that the JSON list has, in its order', async ({
    api,
    partner,
    listed,
  }) => {
    const answer = await table(api, partner);
    expect([answer.statusCode, answer.headers['content-type'], answer.headers['vary']]).toEqual([
      200,
      'text/csv; charset=utf-8',
      'Accept',
    ]);
    expect(answer.headers['content-disposition']).toBe('attachment; filename="settlements.csv"');
    const [names = [], ...lines] = cellsOf(answer.body);
    expect(lines).toHaveLength(listed.length);
    for (const [index, cells] of lines.entries()) {
      const line: Json = Object.fromEntries(names.map((name, column) => [name, cells[column]]));
      const settlement = listed[index];
      for (const field of ['settlement_id', 'status', 'amount', 'destination_amount', 'recipient_id', 'created_at'])
        expect(line[field]).toBe(settlement[field]);
      expect(line.failure_code).toBe('');
    }
  });

  test('no text is a formula for a spreadsheet', async ({ api, partner, listed: _ }) => {
    const [names = [], ...lines] = cellsOf((await table(api, partner)).body);
    expect(lines.map((cells) => cells[names.indexOf('reference')])).toEqual([
      '',
      "'-1+1",
      'plain, with "quotes"',
      `'${HOSTILE}`,
    ]);
    expect(lines.flat().filter((cell) => /^[=+\-@\t\r]/.test(cell))).toEqual([]);
    expect(csvLine(['@SUM(1)', 'x\r\ny'])).toBe('"\'@SUM(1)","x\r\ny"\r\n');
    expect(csvLine(['\t=1', '\r=1', "'"])).toBe(`"'\t=1","'\r=1","'"\r\n`);
  });

  test('200 by the same filters and cursor, and the next page under Link', async ({ api, partner, listed }) => {
    const first = await table(api, partner, '?metadata[team]=@a&limit=2');
    const next = /<([^>]+)>; rel="next"/.exec(String(first.headers['link']))?.[1] ?? expect.fail('no next page');
    const second = await api.call(partner, 'GET', next, undefined, { accept: 'text/csv' });
    const ids = [first, second].flatMap(({ body }) =>
      cellsOf(body)
        .slice(1)
        .map(([id]) => id),
    );
    expect(ids).toEqual(listed.slice(1).map(({ settlement_id }) => settlement_id));
    expect(second.headers['link'] ?? '').not.toContain('next');
    const other = await api.createCaller('read');
    expect(cellsOf((await table(api, other)).body)).toHaveLength(1);
  });

  test("200 with more lines than a page of JSON has, where no limit is given, and others' lists come between its steps", async ({
    newApi,
  }) => {
    const api = await newApi({ deps: { lowPriority: { ...LOW_PRIORITY, seats: 1 } } });
    const [caller, other] = [await api.createCaller(), await api.createCaller()];
    await fillSettlements(api.owner.pool, api.deps.sealer, {
      orgId: caller.orgId,
      templateId: await settle(api, caller),
      settlements: 229,
      columns: { created_at: `created_at - n * interval '1 second'` },
    });
    const { lowPriority } = api.app;
    lowPriority.take('third', () => undefined);
    const answered: string[] = [];
    const whole = table(api, caller).finally(() => answered.push('table'));
    await vi.waitUntil(() => lowPriority.waiting() === 1, WAIT);
    const list = api.call(other, 'GET', '/v2/settlements').finally(() => answered.push('list'));
    await vi.waitUntil(() => lowPriority.waiting() === 2, WAIT);
    lowPriority.leave('third');
    const lines = cellsOf((await whole).body).slice(1);
    expect(new Set(lines.map(([id]) => id)).size).toBe(230);
    expect((await list).statusCode).toBe(200);
    expect(answered).toEqual(['list', 'table']);
    expect(lowPriority.take('third', () => undefined)).toBe('begun');
  });

  test.for(['application/json', '*/*', 'text/csv;q=0.5, application/json'])(
    '200 with JSON for Accept: %s',
    async (accept, { api, partner, listed }) => {
      const answer = await api.call(partner, 'GET', '/v2/settlements', undefined, { accept });
      expect(answer.headers['content-type']).toMatch(/^application\/json/);
      expect(jsonOf(answer)).toEqual(listed);
    },
  );
});
