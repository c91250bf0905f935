/** A page is written in parts, so that a large one does not hold up other requests. */
import fastify from 'fastify';
import { expect, test } from 'vitest';
import { answerPage } from '../../api/http/pagination.ts';

test('other work gets its turn while a page of 100 objects is written, and the page is one array', async () => {
  const app = fastify();
  const rows = Array.from({ length: 100 }, (_, id) => ({ id }));
  let turns = 0;
  let shown = 0;
  const countTurn = (): void => {
    turns += 1;
    if (shown < rows.length) setImmediate(countTurn);
  };
  const show = (row: { id: number }) => {
    if (shown === 0) setImmediate(countTurn);
    shown += 1;
    return row;
  };
  const schema = { type: 'array', items: { type: 'object', properties: { id: { type: 'integer' } } } };
  app.get('/', { schema: { response: { 200: { content: { 'application/json': { schema } } } } } }, (request, reply) =>
    answerPage(request, reply, {
      page: { limit: 100, offset: 0 },
      paged: { items: rows, total: 100, next: null },
      show,
    }),
  );
  const answer = await app.inject('/');
  expect(answer.json()).toEqual(rows);
  expect(answer.headers).toMatchObject({ 'content-type': 'application/json; charset=utf-8', 'x-total-count': '100' });
  expect(turns).toBeGreaterThanOrEqual(19);
});
