/** Every change runs through `commit`, so that no code can forget to nudge the dispatcher. */
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, vi } from 'vitest';
import { readSnapshot } from '../../db/client.ts';
import { commit, commitStatement } from '../../db/commands/commit.ts';
import { newId } from '../../db/id.ts';
import { enqueue } from '../../db/queries/outbox.ts';
import { outbox } from '../../db/schema/index.ts';
import { otpMessage } from '../../domain/outbox.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { withDatabase } from '../support/fixture.ts';

const test = withDatabase();

const OTP_ROW = { kind: 'otp', objectId: 'challenge', context: {}, requestId: 'test' } as const;

describe('commit', () => {
  test('nudges the dispatcher once, after the outbox row is committed', async ({ connection: { db } }) => {
    const seen: Promise<number>[] = [];
    const dispatcher = { nudge: () => void seen.push(db.$count(outbox)) };
    const result = await commit({ db, dispatcher }, 'otp.request', async (tx) => {
      await enqueue(tx, otpMessage(newId(), 'test'));
      expect(seen).toHaveLength(0);
      return 'result';
    });
    expect(result).toBe('result');
    expect(await Promise.all(seen)).toEqual([1]);
  });

  test('passes its first crash point inside the transaction, and the second one before it nudges', async ({
    connection: { db },
  }) => {
    const before = await db.$count(outbox);
    const steps: string[] = [];
    const counts: Promise<number>[] = [];
    const crash = (point: string) => {
      steps.push(point);
      counts.push(db.$count(outbox));
    };
    const dispatcher = { nudge: () => void steps.push('nudge') };
    await commit({ db, dispatcher, crash }, 'otp.request', async (tx) => {
      await enqueue(tx, otpMessage(newId(), 'test'));
      steps.push('run');
    });
    expect(steps).toEqual(['run', 'otp.request:before_commit', 'otp.request:after_commit', 'nudge']);
    expect((await Promise.all(counts))[1]).toBe(before + 1);
  });

  test('neither writes nor nudges nor passes a crash point when the transaction fails', async ({
    connection: { db },
  }) => {
    const before = await db.$count(outbox);
    const [crash, nudge] = [vi.fn(), vi.fn()];
    const failing = commit({ db, dispatcher: { nudge }, crash }, 'otp.request', async (tx) => {
      await enqueue(tx, otpMessage(newId(), 'test'));
      throw new Error('rolled back');
    });
    await expect(failing).rejects.toThrow('rolled back');
    expect([crash.mock.calls, nudge.mock.calls]).toEqual([[], []]);
    expect(await db.$count(outbox)).toBe(before);
  });
});

const FOLDERS = ['activities', 'api', 'db', 'ops', 'process', 'worker'];

/** The TypeScript files of the service that contain this text. */
async function filesWith(text: string): Promise<string[]> {
  const found: string[] = [];
  for (const folder of FOLDERS) {
    for (const name of await readdir(path.join(repositoryRoot, folder), { recursive: true })) {
      const file = path.join(folder, name);
      if (!file.endsWith('.ts')) continue;
      if ((await readFile(path.join(repositoryRoot, file), 'utf8')).includes(text)) found.push(file);
    }
  }
  return found.sort((one, other) => (one < other ? -1 : 1));
}

describe('the code of the service', () => {
  test('opens transactions in commit and readSnapshot alone', async () => {
    expect(await filesWith('.transaction(')).toEqual(['db/client.ts', 'db/commands/commit.ts']);
  });

  test('nudges the dispatcher in commit alone', async () => {
    expect(await filesWith('.nudge(')).toEqual(['db/commands/commit.ts']);
  });
});

describe('commitStatement', () => {
  test('passes its crash points around the statement, and nudges once it is committed', async ({
    connection: { db },
  }) => {
    const before = await db.$count(outbox);
    const steps: string[] = [];
    const counts: Promise<number>[] = [];
    const note = (step: string) => {
      steps.push(step);
      counts.push(db.$count(outbox));
    };
    const deps = { db, dispatcher: { nudge: () => note('nudge') }, crash: note };
    await commitStatement(deps, 'otp.request', (queryable) => queryable.insert(outbox).values(OTP_ROW));
    expect(steps).toEqual(['otp.request:before_commit', 'otp.request:after_commit', 'nudge']);
    expect((await Promise.all(counts)).slice(1)).toEqual([before + 1, before + 1]);
  });

  test('nudges nobody and passes no second crash point when the statement fails', async ({ connection: { db } }) => {
    const [crash, nudge] = [vi.fn(), vi.fn()];
    const failing = commitStatement({ db, dispatcher: { nudge }, crash }, 'otp.request', () =>
      Promise.reject(new Error('refused')),
    );
    await expect(failing).rejects.toThrow('refused');
    expect(crash.mock.calls).toEqual([['otp.request:before_commit']]);
    expect(nudge).not.toHaveBeenCalled();
  });
});

describe('readSnapshot', () => {
  test('reads as of its first statement, whatever others commit meanwhile', async ({ connection: { db } }) => {
    const counts = await readSnapshot(db, async (tx) => {
      const first = await tx.$count(outbox);
      await db.insert(outbox).values(OTP_ROW);
      return [first, await tx.$count(outbox)];
    });
    expect(counts[1]).toBe(counts[0]);
  });

  test('writes nothing', async ({ connection: { db } }) => {
    const writing = readSnapshot(db, (tx) => tx.insert(outbox).values(OTP_ROW));
    await expect(writing).rejects.toThrow();
  });
});
