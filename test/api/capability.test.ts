import { describe, expect } from 'vitest';
import { CAPABILITY_CATALOG } from '../../domain/capability-catalog.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { withApi } from '../support/fixture.ts';
import { jsonOf } from '../support/partner.ts';
import { words } from '../support/words.ts';

const URL = '/v2/capabilities';

const test = withApi({ scope: 'read' });

const read = (api: TestApi, who: Caller | null, headers: Record<string, string> = {}) =>
  api.call(who, 'GET', URL, undefined, headers);

describe('GET /v2/capabilities', () => {
  test('401 for an invalid key, which does not count as a request without a key', async ({ api, partner }) => {
    for (const key of ['', 'sk_local_nonsense', `${partner.apiKey},${partner.apiKey}`]) {
      const answer = await read(api, null, { 'x-api-key': key });
      expect(answer.statusCode).toBe(401);
      expect(answer.body).not.toContain('settlement-simulation');
    }
  });

  test('200 without a key, with the public entries only', async ({ api }) => {
    const answer = await read(api, null);
    expect(answer.statusCode).toBe(200);
    const { services } = jsonOf(answer);
    const expected = CAPABILITY_CATALOG.services.filter(({ audience }) => audience === 'public').map(({ id }) => id);
    expect(services.map(({ id }: { id: string }) => id)).toEqual(expected);
  });

  test('200 with all 25 entries for a key of scope read', async ({ api, partner }) => {
    const answer = await read(api, partner);
    expect(answer.statusCode).toBe(200);
    const catalog = jsonOf(answer);
    expect(new Set(Object.keys(catalog))).toEqual(new Set(['schema_version', 'services', 'states', 'updated_at']));
    expect(catalog.states).toEqual(['live', 'local sandbox', 'gated', 'maintenance', 'unavailable']);
    expect(catalog.services).toHaveLength(25);
    for (const entry of catalog.services) {
      expect(new Set(Object.keys(entry))).toEqual(
        new Set(
          words(`
          audience category description environment evidence evidence_level id name next_gate reviewed_at state
          surface
        `),
        ),
      );
      expect(['live', 'maintenance']).not.toContain(entry.state);
    }
  });

  test('304 without a body for the tag of this answer, alone, weak or in a list', async ({ api, partner }) => {
    for (const who of [null, partner]) {
      const { etag } = (await read(api, who)).headers;
      for (const condition of [`${etag}`, `W/${etag}`, `"other", ${etag}`, '*']) {
        const answer = await read(api, who, { 'if-none-match': condition });
        expect([answer.statusCode, answer.body, answer.headers.etag]).toEqual([304, '', etag]);
        expect(answer.headers.vary).toBe('X-API-Key');
      }
    }
  });

  test('200 for the tag of the other answer: with and without a key the tags differ', async ({ api, partner }) => {
    const [anonymous, known] = [await read(api, null), await read(api, partner)];
    expect(anonymous.headers.etag).not.toBe(known.headers.etag);
    expect([anonymous.headers.vary, known.headers.vary]).toEqual(['X-API-Key', 'X-API-Key']);
    expect((await read(api, partner, { 'if-none-match': `${anonymous.headers.etag}` })).statusCode).toBe(200);
    expect((await read(api, null, { 'if-none-match': `${known.headers.etag}` })).statusCode).toBe(200);
  });
});
