import path from 'node:path';
import { execa } from 'execa';
import { expect } from 'vitest';
import { freePort } from '../../scripts/stack/port.ts';
import { withStack } from '../support/fixture.ts';

const DEMO = path.resolve(import.meta.dirname, '../../scripts/demo.ts');

const test = withStack();

const demo = (url: string) => execa('node', ['--import', 'tsx', DEMO, '--url', url], { reject: false, all: true });

test('the demo finds every answer as documented, and prints the headers of each request but no key', async ({
  stack,
}) => {
  const { exitCode, all } = await demo(stack.baseUrl);
  expect(exitCode, all).toBe(0);
  expect(all).toContain('Every answer is as documented.');
  expect(all).toMatch(/ idempotency-key: [0-9a-f-]{36}/);
  expect(all).toContain(' prefer: wait=20');
  expect(all).not.toMatch(/sk_local_[0-9A-Za-z]{20}/);
});

test('the demo exits with 1, and says why, when no service answers', async () => {
  const url = `http://127.0.0.1:${await freePort()}`;
  const { exitCode, all } = await demo(url);
  expect([exitCode, all]).toEqual([1, expect.stringContaining(`no connection to ${url}`)]);
});
