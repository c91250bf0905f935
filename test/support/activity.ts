/** What the activities need, for tests that call them without a worker. */
import { createCertifier } from '../../activities/certificate.ts';
import type { ActivityDeps } from '../../activities/deps.ts';
import { createGuardedHttp } from '../../activities/providers/guarded-http.ts';
import { createMailer } from '../../activities/providers/mailer.ts';
import { createPayoutRail } from '../../activities/providers/payout-rail.ts';
import { RETENTION } from '../../domain/retention.ts';
import { TEST_SECRETS, type TestApi } from './api.ts';

/** The same database and secrets as those of the API. Unless they are given, no API listens and nothing is dispatched. */
export const activityDeps = (
  api: TestApi,
  apiBaseUrl = 'http://127.0.0.1:1',
  dispatcher: ActivityDeps['dispatcher'] = { nudge: () => undefined },
): ActivityDeps => ({
  runtime: api.deps.runtime,
  db: api.connection.db,
  laneDb: api.connection.db,
  retryDb: api.connection.db,
  sealer: api.deps.sealer,
  certifier: createCertifier([TEST_SECRETS.signing]),
  apiBaseUrl,
  cardprocWebhookSecret: TEST_SECRETS.cardproc,
  bankledgerWebhookSecret: TEST_SECRETS.bankledger,
  idverifyWebhookSecret: TEST_SECRETS.idverify,
  payoutRail: createPayoutRail(api.deps.runtime),
  guardedHttp: createGuardedHttp({ rules: { allowLocal: true }, resolve: api.deps.resolveHost }),
  idverify: api.deps.idverify,
  mailer: createMailer({ ...api.deps.config, runtime: api.deps.runtime }),
  dispatcher,
  // Without Temporal, every workflow counts as running.
  reportLane: async () => undefined,
  deliveriesDue: { subscribe: () => () => undefined },
  stopping: new AbortController().signal,
  runs: { findRunning: async (workflowIds) => new Set(workflowIds) },
  retentionDays: { events: RETENTION.events.daysMin, quotes: RETENTION.quotes.daysMin },
  now: () => new Date(),
  log: { info: () => undefined, warn: () => undefined },
});
