/** Requests that are refused: what they answer, and that they leave no trace. */
import type { LightMyRequestResponse } from 'fastify';
import { expect } from 'vitest';
import type { TestApi } from './api.ts';
import { digestTables } from './database.ts';
import { type Json, jsonOf } from './partner.ts';

/** The request is answered with this status and at least this body, and nothing is written. Returns the body. */
export async function expectRefused(
  api: TestApi,
  request: () => Promise<LightMyRequestResponse>,
  status: number,
  body: object = {},
): Promise<Json> {
  const before = await digestTables(api.connection.pool);
  const answer = await request();
  expect(answer.statusCode, answer.body).toBe(status);
  expect(jsonOf(answer)).toMatchObject(body);
  expect(await digestTables(api.connection.pool)).toEqual(before);
  return jsonOf(answer);
}
