/** The API answers requests that Schemathesis makes from the document alone; `npm run fuzz` also makes some at random. */
import { expect } from 'vitest';
import { recipientBody } from '../../scripts/sandbox/partner.ts';
import { acquireSchemathesis, createCaller, fuzz, hasCreated } from '../fuzz/schemathesis.ts';
import { TEST_SECRETS } from '../support/api.ts';
import { FILE, withStack } from '../support/fixture.ts';
import { stretched } from '../support/patience.ts';

/** Alone it takes 20 s. */
const SECONDS_MAX = Math.ceil(stretched(60_000) / 1_000);

const test = withStack().extend('python', FILE, () => acquireSchemathesis(() => undefined));
test.beforeAll(({ python: _python }) => undefined);

test('every answer to a generated request is in the document, and none is a 5xx', async ({ stack, python }) => {
  const lines: string[] = [];
  const passed = await fuzz({
    python,
    baseUrl: stack.baseUrl,
    seconds: SECONDS_MAX,
    seed: 1,
    isEndless: false,
    obeysRateLimit: false,
    secrets: {
      cardproc: TEST_SECRETS.cardproc,
      bankledger: TEST_SECRETS.bankledger,
      idverify: TEST_SECRETS.idverify,
    },
    print: (line) => lines.push(line),
  });
  expect(passed, lines.join('\n')).toBe(true);
});

test('a run counts only if it created a recipient by the key and one by the session', async ({ stack }) => {
  const caller = await createCaller(stack.baseUrl);
  expect(await hasCreated(caller)).toBe(false);
  await caller.partner.recipients.create(recipientBody());
  expect(await hasCreated(caller)).toBe(false);
  const { kind: _, ...body } = recipientBody();
  await caller.consumer.recipients.create(body);
  expect(await hasCreated(caller)).toBe(true);
});
