/** The TypeScript client and an API that is killed: nothing is written for it in the program that settles. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { createClient } from '../../../clients/typescript/index.ts';
import { startApiProcess } from '../../support/api-process.ts';
import { FILE, withStack } from '../../support/fixture.ts';
import { recipientBody, settleBody } from '../../support/partner.ts';

const SETTLEMENTS = 15;
const CALLERS = 5;
const KILLS_AFTER = [5, 10];
const DOWN_MS = 300;

const test = withStack().extend('process', FILE, async ({ stack }, { onCleanup }) => {
  const api = await startApiProcess(stack);
  onCleanup(api.kill);
  return api;
});

test('an API killed twice while settlements are created: each is created once', async ({ process, stack }) => {
  const { baseUrl } = process;
  const signUp = { name: 'Acme', country: 'JM', contact_email: 'dev@acme.example' };
  const { api_key: apiKey } = await createClient({ baseUrl }).organizations.create(signUp);
  const retried: string[] = [];
  const client = createClient({ baseUrl, apiKey, onRetry: ({ error }) => retried.push(error.name) });
  const { recipient_id } = await client.recipients.create(
    recipientBody() as Parameters<typeof client.recipients.create>[0],
  );
  const accepted: string[] = [];
  const kills: Promise<void>[] = [];
  const kill = async (): Promise<void> => {
    await process.kill();
    await delay(DOWN_MS);
    await process.start();
  };
  let begun = 0;
  const work = async (): Promise<void> => {
    while (begun < SETTLEMENTS) {
      begun += 1;
      const fields = settleBody(recipient_id, { reference: `INV-${begun}` });
      const created = await client.settlements.create(fields as Parameters<typeof client.settlements.create>[0]);
      accepted.push(created.settlement_id);
      if (KILLS_AFTER.includes(accepted.length)) kills.push(kill());
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, work));
  await Promise.all(kills);
  expect(kills).toHaveLength(KILLS_AFTER.length);
  expect(retried).toContain('ConnectionFailed');
  expect(new Set(accepted).size).toBe(SETTLEMENTS);
  const references = new Set<string | null>();
  for await (const { settlement_id, reference } of client.settlements.list()) {
    expect(accepted).toContain(settlement_id);
    references.add(reference);
  }
  expect(references.size).toBe(SETTLEMENTS);
  expect(stack.baseUrl).not.toBe(baseUrl);
  const ended = await Promise.all(accepted.slice(-CALLERS).map((id) => client.settlements.wait(id)));
  expect(ended.map(({ status }) => status)).toEqual(Array.from({ length: CALLERS }, () => 'settled'));
});
