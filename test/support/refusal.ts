/** Requests that are refused: what they answer, and that they leave no trace. */
import type { LightMyRequestResponse } from 'fastify';
import type pg from 'pg';
import { expect } from 'vitest';
import type { TestApi } from './api.ts';
import { digestTables } from './database.ts';
import { type Json, jsonOf } from './partner.ts';

/** Nothing is written while this runs. Returns what it returns. */
export async function expectUnchanged<T>(pool: pg.Pool, run: () => Promise<T>): Promise<T> {
  const before = await digestTables(pool);
  const result = await run();
  expect(await digestTables(pool)).toEqual(before);
  return result;
}

/** The request is answered with this status and at least this body, and nothing is written. Returns the body. */
export const expectRefused = (
  api: Pick<TestApi, 'connection'>,
  request: () => Promise<LightMyRequestResponse>,
  status: number,
  body: object = {},
): Promise<Json> =>
  expectUnchanged(api.connection.pool, async () => {
    const answer = await request();
    expect(answer.statusCode, answer.body).toBe(status);
    expect(jsonOf(answer)).toMatchObject(body);
    return jsonOf(answer);
  });

/** The place and the type of each fault: `['body.amount', 'missing']`. */
export const faultsOf = (answer: LightMyRequestResponse): [string, string][] =>
  jsonOf(answer).detail.map(({ loc, type }: Json) => [loc.join('.'), type]);

/** The request is 422 with exactly these faults, and nothing is written. */
export const expectInvalid = (
  api: Pick<TestApi, 'connection'>,
  request: () => Promise<LightMyRequestResponse>,
  faults: readonly (readonly [place: string, type: string])[],
): Promise<void> =>
  expectUnchanged(api.connection.pool, async () => {
    const answer = await request();
    expect([answer.statusCode, faultsOf(answer)]).toEqual([422, faults]);
  });
