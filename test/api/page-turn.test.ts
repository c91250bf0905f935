/** A page is written in parts, and few of an organization's at once, so that large ones do not hold up others. */
import fastify from 'fastify';
import { expect, test } from 'vitest';
import { createOrder } from '../../api/http/order.ts';
import { answerPage, PAGES_AT_ONCE } from '../../api/http/pagination.ts';

const ROWS = Array.from({ length: 100 }, (_, id) => ({ id }));
const SCHEMA = { type: 'array', items: { type: 'object', properties: { id: { type: 'integer' } } } };

/** `GET /<organization>` answers a page; `onShow` is called for each of its objects. */
function pageServer(onShow: (orgId: string) => void) {
  const app = fastify();
  app.decorate('pageOrder', createOrder(PAGES_AT_ONCE));
  app.decorateRequest('principal', null);
  const schema = { response: { 200: { content: { 'application/json': { schema: SCHEMA } } } } };
  app.get<{ Params: { orgId: string } }>('/:orgId', { schema }, (request, reply) => {
    const { orgId } = request.params;
    Object.assign(request, { principal: { orgId } });
    const show = (row: { id: number }) => {
      onShow(orgId);
      return row;
    };
    const read = async () => ({ items: ROWS, total: 100, next: null });
    return answerPage(request, reply, { page: { limit: 100, offset: 0 }, read, show });
  });
  return app;
}

test('other work gets its turn while a page of 100 objects is written, and the page is one array', async () => {
  let turns = 0;
  let shown = 0;
  const countTurn = (): void => {
    turns += 1;
    if (shown < ROWS.length) setImmediate(countTurn);
  };
  const app = pageServer(() => {
    if (shown === 0) setImmediate(countTurn);
    shown += 1;
  });
  const answer = await app.inject('/one');
  expect(answer.json()).toEqual(ROWS);
  expect(answer.headers).toMatchObject({ 'content-type': 'application/json; charset=utf-8', 'x-total-count': '100' });
  expect(turns).toBeGreaterThanOrEqual(19);
});

test('a page waits for at most two pages of another organization, however many it requests', async () => {
  const shown: string[] = [];
  const app = pageServer((orgId) => shown.push(orgId));
  const greedy = Array.from({ length: 8 }, () => app.inject('/greedy'));
  expect((await app.inject('/modest')).statusCode).toBe(200);
  const before = shown.slice(0, shown.lastIndexOf('modest')).filter((orgId) => orgId === 'greedy').length;
  // Both are made in parts, in turn.
  expect(before).toBeLessThanOrEqual(PAGES_AT_ONCE * (ROWS.length + 5));
  for (const answer of await Promise.all(greedy)) expect(answer.json()).toEqual(ROWS);
});

test('a page that fails does not stop the next page of its organization', async () => {
  const inOrder = createOrder(1);
  const failed = inOrder('one', () => Promise.reject(new Error('it failed')));
  const next = inOrder('one', async () => 'made');
  await expect(failed).rejects.toThrow('it failed');
  expect(await next).toBe('made');
});
