/** The application on a database of its own, and callers for it. Only the providers are fakes. */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyBaseLogger, FastifyInstance, LightMyRequestResponse } from 'fastify';
import { pino } from 'pino';
import { verificationActivities } from '../../activities/verification.ts';
import { buildApp } from '../../api/app.ts';
import type { ApiDeps } from '../../api/deps.ts';
import { certificateKeys } from '../../api/http/certificate-key.ts';
import { EVENT_LOOP_DELAY_MAX_MS } from '../../api/plugins/load-shedding.ts';
import { LOW_PRIORITY } from '../../api/plugins/turn.ts';
import { createChangeListener } from '../../db/change-listener.ts';
import { type Connection, connect } from '../../db/client.ts';
import { newId } from '../../db/id.ts';
import { createLongLists } from '../../db/queries/long-list.ts';
import { apiKeys, organizations } from '../../db/schema/index.ts';
import { createSealer } from '../../db/seal.ts';
import { RETENTION } from '../../domain/retention.ts';
import { environmentName, type RuntimeEnvironment } from '../../domain/runtime.ts';
import type { Scope } from '../../domain/scope.ts';
import type { KeyRing } from '../../ops/keys.ts';
import { issueApiKey } from '../../process/api-key.ts';
import { createIdverify } from '../../process/idverify.ts';
import { requireConformance } from './conformance.ts';
import { PATIENCE_MS, patientUrl } from './connection.ts';
import { stretched } from './patience.ts';
import { createTestDatabase, type TestDatabase } from './postgres.ts';

const CLOSE_MAX_MS = 5_000;
const RACING_MAX = 100;

export const TEST_SECRETS = {
  apiKeyPepper: { id: 'test-1', secret: 'test-pepper-test-pepper-test-pepper' },
  cardproc: 'cardproc-test-secret-0123456789abcdef',
  bankledger: 'bankledger-test-secret-0123456789abcdef',
  idverify: 'idverify-test-secret-0123456789abcdef',
  encryption: { id: 'test-1', key: randomBytes(32) },
  signing: { id: 'test-1', key: randomBytes(32) },
} as const;

/** The same secrets, as the operators' commands take them. */
export const TEST_KEYS: KeyRing = {
  encryptionKeys: [TEST_SECRETS.encryption],
  apiKeyPeppers: [TEST_SECRETS.apiKeyPepper],
  certificateSigningKeys: [TEST_SECRETS.signing],
  payloadKeys: undefined,
};

export type Caller = { readonly orgId: string; readonly keyId: string; readonly apiKey: string };

export type TestApi = {
  readonly app: FastifyInstance;
  readonly deps: ApiDeps;
  readonly connection: Connection;
  readonly databaseUrl: string;
  /** For the connections that listen. */
  readonly listenUrl: string;
  /** As the role that owns the tables: what a test does to them, and the service may not. */
  readonly owner: Connection;
  /** How often the dispatcher was nudged. */
  nudges(): number;
  /** A key of a new organization, so that tests share nothing. */
  createCaller(scope?: Scope): Promise<Caller>;
  /** Another key of an existing organization. `stored` overrides its columns. */
  createKey(orgId: string, scope: Scope, stored?: Partial<typeof apiKeys.$inferInsert>): Promise<Caller>;
  /** @throws Error when the OpenAPI document does not contain such an answer */
  call(
    caller: Caller | null,
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    url: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<LightMyRequestResponse>;
  close(): Promise<void>;
};

export type TestApiOptions = {
  readonly runtime?: RuntimeEnvironment;
  readonly deps?: Partial<ApiDeps>;
  readonly config?: Partial<ApiDeps['config']>;
  readonly logger?: FastifyBaseLogger;
  readonly database?: TestDatabase;
};

export async function createTestApi(options: TestApiOptions = {}): Promise<TestApi> {
  const runtime = options.runtime ?? 'local-sandbox';
  const database = options.database ?? (await createTestDatabase());
  const isPooled = database.listenUrl !== undefined;
  const connection = connect(isPooled ? database.databaseUrl : patientUrl(database.databaseUrl), {
    poolSizeMax: 10,
    name: 'test',
    onIdleError: () => undefined,
    tenants: { lockTimeoutMs: PATIENCE_MS, turnTimeoutMs: PATIENCE_MS },
    connectTimeoutMs: PATIENCE_MS,
    isPooled,
  });
  const listenUrl = database.listenUrl ?? database.databaseUrl;
  const changes = createChangeListener(listenUrl, 'settlement_changed', () => undefined);
  const owner = connect(patientUrl(database.migrationUrl), {
    ...{ poolSizeMax: 2, name: 'test-owner', onIdleError: () => undefined },
  });
  let nudgeCount = 0;
  const deps: ApiDeps = {
    runtime,
    config: {
      publicBaseUrl: 'http://127.0.0.1',
      apiKeyPeppers: [TEST_SECRETS.apiKeyPepper],
      cardprocWebhookSecrets: [TEST_SECRETS.cardproc],
      bankledgerWebhookSecrets: [TEST_SECRETS.bankledger],
      idverifyWebhookSecrets: [TEST_SECRETS.idverify],
      idverify: undefined,
      idverifyLevelNames: ['enhanced', 'another'],
      smtpUrl: undefined,
      webhookAllowLocalTargets: true,
      trustedProxies: [],
      consumerAllowedOrigins: [],
      rateLimitPerMinute: 1_000_000,
      outboxMaxRows: 200_000,
      retentionDays: { events: RETENTION.events.daysMin, quotes: RETENTION.quotes.daysMin },
      logLevel: 'silent',
      ...options.config,
    },
    db: connection.db,
    sealer: createSealer([TEST_SECRETS.encryption]),
    certificateKeys: certificateKeys([TEST_SECRETS.signing]),
    idverify: createIdverify({ runtime, settings: undefined, now: () => new Date(), log: { warn: () => undefined } }),
    // As the workflow does, without Temporal.
    createApplicant: async (verification) => verificationActivities(deps).createApplicant(verification),
    dispatcher: {
      nudge: () => {
        nudgeCount += 1;
      },
    },
    longLists: createLongLists(100),
    readList: (run) => run(connection.db),
    changes,
    temporalHealth: async () => ({ status: 'up', cause: null }),
    // An organization's requests race, as in several processes.
    lowPriority: { ...LOW_PRIORITY, seats: RACING_MAX, seatsOfTenant: RACING_MAX },
    eventLoopDelayMaxMs: stretched(5 * EVENT_LOOP_DELAY_MAX_MS),
    resolveHost: async () => {
      throw new Error('tests ask no name server');
    },
    now: () => new Date(),
    ...options.deps,
  };
  const app = await buildApp(deps, options.logger ?? pino({ level: deps.config.logLevel }));
  await app.ready();

  const createKey: TestApi['createKey'] = async (orgId, scope, stored = {}) => {
    const { apiKey, credential } = issueApiKey(deps);
    const record = { ...credential, orgId, name: 'test', scope, expiresAt: null, createdAt: deps.now() };
    await connection.db.insert(apiKeys).values({ ...record, status: 'active', ...stored });
    return { orgId, keyId: credential.keyId, apiKey };
  };

  return {
    app,
    deps,
    connection,
    databaseUrl: database.databaseUrl,
    listenUrl,
    owner,
    nudges: () => nudgeCount,
    createKey,
    createCaller: async (scope = 'full') => {
      const orgId = newId();
      await connection.db.insert(organizations).values({
        orgId,
        kind: 'partner',
        name: 'Acme',
        country: 'JM',
        contactEmail: 'dev@acme.example',
        environment: environmentName(runtime),
        createdAt: deps.now(),
      });
      return createKey(orgId, scope);
    },
    call: async (caller, method, url, body, headers = {}) => {
      const answer = await app.inject({
        method,
        url,
        headers: {
          ...(caller ? { 'x-api-key': caller.apiKey } : {}),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined
          ? {}
          : { payload: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body) }),
      });
      requireConformance(method, url, answer);
      return answer;
    },
    close: async () => {
      await app.close();
      await changes.close();
      // A test that failed may have kept a client, for which its pool would wait without end.
      await Promise.race([
        Promise.all([connection.close(), owner.close()]),
        delay(stretched(CLOSE_MAX_MS), undefined, { ref: false }),
      ]);
      await database.drop();
    },
  };
}
