/** `GET /openapi.json` is made once, and a client that has the current document gets 304 (contract §15). */
import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { expect, vi } from 'vitest';
import { withApi } from '../support/fixture.ts';

const test = withApi();

test('the same bytes each time, made once, with their SHA-256 as the ETag', async ({ api }) => {
  const first = await api.call(null, 'GET', '/openapi.json');
  const swagger = vi.spyOn(api.app, 'swagger');
  const second = await api.call(null, 'GET', '/openapi.json');
  expect(swagger).not.toHaveBeenCalled();
  expect(second.body).toBe(first.body);
  expect(second.headers['content-type']).toBe('application/json; charset=utf-8');
  const digest = createHash('sha256').update(first.rawPayload).digest('hex');
  expect([first.headers.etag, second.headers.etag]).toEqual([`"${digest}"`, `"${digest}"`]);
});

test('304 without a body for the current ETag, and 200 for another one', async ({ api }) => {
  const { etag } = (await api.call(null, 'GET', '/openapi.json')).headers;
  for (const condition of [`${etag}`, `W/${etag}`, `"other", ${etag}`, '*']) {
    const answer = await api.call(null, 'GET', '/openapi.json', undefined, { 'if-none-match': condition });
    expect([answer.statusCode, answer.body, answer.headers.etag]).toEqual([304, '', etag]);
  }
  const other = await api.call(null, 'GET', '/openapi.json', undefined, { 'if-none-match': '"other"' });
  expect(other.statusCode).toBe(200);
});

test('the document is compressed for a caller that takes gzip, with a tag of its own', async ({ api }) => {
  const plain = await api.call(null, 'GET', '/openapi.json');
  const accept = { 'accept-encoding': 'br, gzip' };
  const packed = await api.app.inject({ method: 'GET', url: '/openapi.json', headers: accept });
  expect(packed.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' });
  expect(gunzipSync(packed.rawPayload).toString()).toBe(plain.body);
  expect(packed.headers.etag).not.toBe(plain.headers.etag);
  const again = { ...accept, 'if-none-match': String(packed.headers.etag) };
  expect((await api.app.inject({ method: 'GET', url: '/openapi.json', headers: again })).statusCode).toBe(304);
});
