/** The OpenAPI document of the application. No server is needed: every dependency throws when it is used. */
import { pino } from 'pino';
import { buildApp } from '../../api/app.ts';
import type { ApiDeps } from '../../api/deps.ts';
import { IN_FLIGHT } from '../../api/plugins/in-flight.ts';

const CONFIG: ApiDeps['config'] = {
  publicBaseUrl: 'http://127.0.0.1:3000',
  apiKeyPeppers: [{ id: '', secret: '' }],
  cardprocWebhookSecrets: [],
  bankledgerWebhookSecrets: [],
  idverifyWebhookSecrets: [],
  idverify: undefined,
  idverifyLevelNames: [],
  smtpUrl: undefined,
  webhookAllowLocalTargets: false,
  trustedProxies: [],
  consumerAllowedOrigins: [],
  rateLimitPerMinute: 1,
  outboxMaxRows: 1,
  retentionDays: { events: 1, quotes: 1 },
  logLevel: 'silent',
};

export const GIVEN: Partial<ApiDeps> = {
  config: CONFIG,
  runtime: 'local-sandbox',
  eventLoopDelayMaxMs: 1_000,
  inFlight: IN_FLIGHT,
};

/** Dependencies that only let the application be built: all but the given ones throw when they are used. */
const depsOf = (given: Partial<ApiDeps>): ApiDeps =>
  new Proxy<ApiDeps>(Object.create(null), {
    get: (_target, name) =>
      name === 'metrics' ? undefined : Object.hasOwn(given, name) ? Reflect.get(given, name) : standIn(String(name)),
  });

function standIn(name: string): object {
  const refuse = (): never => {
    throw new Error(`${name} was used while the OpenAPI document was made`);
  };
  // An object: Fastify calls a function that it gets as a plugin's options, and nobody would catch its error.
  return new Proxy({}, { get: refuse });
}

/** The document that `/openapi.json` serves, and the operations that it should describe. */
export async function describeApi(given = GIVEN) {
  const app = await buildApp(depsOf(given), pino({ level: CONFIG.logLevel }));
  try {
    await app.ready();
    return { document: app.swagger(), operations: app.operations };
  } finally {
    await app.close();
  }
}
