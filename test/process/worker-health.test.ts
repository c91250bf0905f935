/** The readiness of a worker. Its process is in test/e2e/deployment.test.ts. */
import { expect, vi } from 'vitest';
import { connect } from '../../db/client.ts';
import { migrationCount } from '../../db/migrate.ts';
import { createKeyCheck } from '../../process/key-check.ts';
import { describeError } from '../../process/logger.ts';
import { createReadiness, createWorkerReadiness } from '../../process/readiness.ts';
import { TEST_KEYS } from '../support/api.ts';
import { withApi } from '../support/fixture.ts';

const test = withApi();
const silent = { warn: () => undefined };

test('a worker is ready with a right clock, Temporal up and its pollers running, and not without one of them', async ({
  api,
}) => {
  const up = { status: 'up', cause: null } as const;
  const down = { status: 'down', cause: 'right_missing', sentence: '' } as const;
  const readinessOf = async ({ offMs = 0, temporal = up as typeof up | typeof down, polls = true }) => {
    const now = () => new Date(Date.now() + offMs);
    const readiness = createReadiness({
      db: api.connection.db,
      now,
      log: silent,
      temporalHealth: async () => temporal,
    });
    return await createWorkerReadiness(readiness, () => polls)();
  };
  expect(await readinessOf({})).toMatchObject({ status: 'ready', pollers: 'running', temporal: 'up' });
  expect(await readinessOf({ offMs: 6_000 })).toMatchObject({ status: 'not_ready', pollers: 'running' });
  expect(await readinessOf({ polls: false })).toMatchObject({ status: 'not_ready', pollers: 'stopped' });
  expect(await readinessOf({ temporal: down })).toMatchObject({
    status: 'not_ready',
    postgres: 'up',
    temporal: 'down',
    temporal_cause: 'right_missing',
  });
});

test('what is wrong is asked once for requests at once, logged once a minute as long as it does not change, and asked again when the clock was set back', async ({
  api,
  onTestFinished,
}) => {
  const right = { status: 'down', cause: 'right_missing', sentence: 'a right is missing' } as const;
  const up = { status: 'up', cause: null } as const;
  const other = { ...right, cause: 'credentials_refused', sentence: 'a credential is refused' } as const;
  const temporalHealth = vi.fn<() => Promise<typeof right | typeof other | typeof up>>().mockResolvedValue(right);
  const log = { warn: vi.fn() };
  let aheadMs = 0;
  const now = () => new Date(Date.now() + aheadMs);
  const readiness = createReadiness({ db: api.connection.db, now, log, temporalHealth });
  const readAt = async (ms: number) => {
    aheadMs = ms;
    await readiness();
  };
  await Promise.all([readAt(0), readAt(0)]);
  for (const ms of [2_000, -2_000]) await readAt(ms);
  expect(temporalHealth).toHaveBeenCalledTimes(3);
  const said = [expect.objectContaining({ status: 'ready', reason: right.sentence }), 'Temporal cannot be used'];
  expect(log.warn.mock.calls).toEqual([said]);
  const measured = performance.now.bind(performance);
  const later = vi.spyOn(performance, 'now').mockImplementation(() => measured() + 60_000);
  onTestFinished(() => later.mockRestore());
  for (const ms of [2_000, 4_000]) await readAt(ms);
  expect(log.warn.mock.calls).toEqual([said, said]);
  temporalHealth.mockResolvedValue(up);
  await readAt(2_000);
  temporalHealth.mockResolvedValue(right);
  await readAt(4_000);
  expect(log.warn.mock.calls).toEqual([said, said, said]);
  temporalHealth.mockResolvedValue(other);
  await readAt(2_000);
  expect(log.warn).toHaveBeenLastCalledWith(expect.objectContaining({ reason: other.sentence }), expect.anything());
  await readAt(8_000);
  const reason = "this process's clock differs from PostgreSQL's";
  expect(log.warn).toHaveBeenLastCalledWith(expect.objectContaining({ reason }), 'the process is not ready');
});

test.for([
  ['a database that was never migrated', '42P01', 'up', (url: string) => url],
  ['a database that is not there', 'ECONNREFUSED', 'down', (url: string) => url.replace(/:\d+\//, ':1/')],
] as const)(
  'the readiness and one line of the log tell %s, by %s and %s',
  async ([, code, postgres, change], { newApi, onTestFinished }) => {
    const { owner, databaseUrl } = await newApi();
    await owner.pool.query('ALTER TABLE service_keys RENAME TO of_another_program');
    const url = change(databaseUrl);
    const settings = { poolSizeMax: 1, name: 'test', onIdleError: () => undefined };
    const { db, close } = connect(url, {
      ...settings,
      untilReady: createKeyCheck({
        config: TEST_KEYS,
        open: () => connect(url, settings),
        log: silent,
        refuse: () => undefined,
      }),
    });
    onTestFinished(close);
    const log = { warn: vi.fn<(fields: Record<string, unknown>, message: string) => void>() };
    let aheadMs = 0;
    const now = () => new Date(Date.now() + aheadMs);
    const readiness = createReadiness({ db, now, log, temporalHealth: async () => ({ status: 'up', cause: null }) });
    for (const ms of [0, 2_000]) {
      aheadMs = ms;
      expect(await readiness()).toEqual({
        status: 'not_ready',
        postgres,
        migrations: { applied: null, expected: migrationCount() },
        clock_offset_ms: null,
        temporal: 'up',
        temporal_cause: null,
      });
    }
    expect(log.warn.mock.calls.map(([{ err }, message]) => [describeError(err)['code'], message])).toEqual([
      [code, 'the process is not ready'],
    ]);
  },
);
