/**
 * What the tests of one file share. It is opened when the first test needs it and closed after the last test:
 *
 * const test = withApi({ scope: 'read' }); test('200 for an own recipient', async ({ api, partner }) => { … });
 *
 * A file calls one of these functions once, at its top level, and extends the result where it needs more:
 *
 * const test = withApi().extend('recipientId', FILE, ({ api, partner }) => createRecipient({ api }, partner));
 *
 * Rules of vitest: it opens the fixtures once for each `test` object, so a file uses only the last one it made. It
 * reads which fixtures a function needs from its parameter, which must be a destructuring pattern. `test.each` passes
 * no fixtures; `test.for` passes them as the second argument. `test.beforeAll` and `test.beforeEach` pass them too. The
 * name `caller` is taken by the function that holds the context.
 */
import { afterEach, test as base, beforeAll } from 'vitest';
import { connect } from '../../db/client.ts';
import type { Scope } from '../../domain/scope.ts';
import { createTestApi, type TestApiOptions } from './api.ts';
import { PATIENCE_MS, patientUrl } from './connection.ts';
import { createTestDatabase, testServer } from './postgres.ts';
import { createSteps } from './settlement.ts';
import { type StackOptions, startStack } from './stack.ts';
import { testDevServer, testWorkflowBundle } from './temporal.ts';

/** The options of a fixture that lives as long as its file. */
export const FILE = { scope: 'file' } as const;

export type TestClock = {
  readonly now: () => Date;
  /** Moves the clock by so much. A running clock keeps running. */
  readonly advance: (ms: number) => void;
  /** Stops the clock at this moment. */
  readonly stop: (at: Date) => void;
};

/** A database with the current schema: `database`, `connection` to it, and `owner`, which may change its tables. */
export function withDatabase(poolSizeMax = 10) {
  beforeAll(async () => void (await testServer()));
  return base
    .extend(
      'database',
      FILE,
      opening(createTestDatabase, (database) => database.drop()),
    )
    .extend('connection', FILE, ({ database }, { onCleanup }) => {
      const url = patientUrl(database.databaseUrl);
      const options = { name: 'test', onIdleError: () => undefined, connectTimeoutMs: PATIENCE_MS };
      const connection = connect(url, { ...options, poolSizeMax });
      onCleanup(connection.close);
      return connection;
    })
    .extend('owner', FILE, ({ database }, { onCleanup }) => {
      const owner = connect(patientUrl(database.migrationUrl), {
        poolSizeMax: 2,
        name: 'test-owner',
        onIdleError: () => undefined,
      });
      onCleanup(owner.close);
      return owner;
    });
}

/**
 * The API in this process, without Temporal: `api`, `port` (on which it listens once a test needs that), `partner` (a
 * key of the file's own organization), `steps`
 * (settlements that the test moves itself), `clock` (which the API reads, and which is right again after each test)
 * and `newApi` (opens one more API for one test).
 */
export function withApi({ scope, ...options }: TestApiOptions & { readonly scope?: Scope } = {}) {
  beforeAll(async () => void (await testServer()));
  const { clock, reset } = createClock();
  afterEach(reset);
  return base
    .extend('clock', FILE, clock)
    .extend('api', FILE, openApi({ ...options, deps: { now: clock.now, ...options.deps } }))
    .extend('port', FILE, async ({ api }) => Number(new URL(await api.app.listen({ host: '127.0.0.1', port: 0 })).port))
    .extend('partner', FILE, ({ api }) => api.createCaller(scope))
    .extend('steps', FILE, ({ api, partner }) => createSteps(api, partner))
    .extend('newApi', ({ onTestFinished }) => async (own: TestApiOptions = {}) => {
      const api = await createTestApi(own);
      onTestFinished(() => api.close());
      return api;
    });
}

/** The whole service in this process, with PostgreSQL and Temporal: `stack`, its `api` and a `partner`. */
export function withStack(options: StackOptions = {}) {
  beforeAll(async () => void (await Promise.all([testServer(), testDevServer(), testWorkflowBundle()])));
  return base
    .extend(
      'stack',
      FILE,
      opening(
        () => startStack(options),
        (stack) => stack.close(),
      ),
    )
    .extend('api', FILE, ({ stack }) => stack.api)
    .extend('partner', FILE, ({ api }) => api.createCaller());
}

/** A fixture for one more API, of another runtime for example: `withApi().extend('remote', FILE, openApi({ … }))`. */
export const openApi = (options: TestApiOptions = {}) =>
  opening(
    () => createTestApi(options),
    (api) => api.close(),
  );

/** As `openApi`: one API in each runtime environment. */
export const openApis = () =>
  opening(
    async () => ({
      'local-sandbox': await createTestApi({ runtime: 'local-sandbox' }),
      'remote-sandbox': await createTestApi({ runtime: 'remote-sandbox' }),
      production: await createTestApi({ runtime: 'production' }),
    }),
    async (apis) => void (await Promise.all(Object.values(apis).map((api) => api.close()))),
  );

/** A fixture that needs no other and is closed after the file or, without `FILE`, after the test. */
export function opening<T>(open: () => Promise<T>, close: (value: T) => Promise<void>) {
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  return async ({}: object, { onCleanup }: { onCleanup: (cleanup: () => Promise<void>) => void }): Promise<T> => {
    const value = await open();
    onCleanup(() => close(value));
    return value;
  };
}

function createClock(): { readonly clock: TestClock; readonly reset: () => void } {
  let aheadMs = 0;
  let stoppedAt: Date | undefined;
  const clock: TestClock = {
    now: () => new Date((stoppedAt?.getTime() ?? Date.now()) + aheadMs),
    advance: (ms) => {
      aheadMs += ms;
    },
    stop: (at) => {
      stoppedAt = at;
      aheadMs = 0;
    },
  };
  const reset = (): void => {
    aheadMs = 0;
    stoppedAt = undefined;
  };
  return { clock, reset };
}
