/** The OpenAPI document of the application as it is registered. Nothing is asked of a database: what a route would use throws. */
import { pino } from 'pino';
import { buildApp } from '../../api/app.ts';
import type { ApiDeps } from '../../api/deps.ts';

/** A dependency that exists only so that the application can be built. */
function standIn<Dependency extends object>(name: string): Dependency {
  return new Proxy<Dependency>(Object.create(null), {
    get: () => {
      throw new Error(`${name} was used while the application was only described`);
    },
  });
}

const CONFIG: ApiDeps['config'] = {
  runtime: 'local-sandbox',
  publicBaseUrl: 'http://127.0.0.1:3000',
  apiKeyPepper: '',
  cardprocWebhookSecrets: [],
  bankledgerWebhookSecrets: [],
  idverifyWebhookSecrets: [],
  idverify: undefined,
  smtpUrl: undefined,
  webhookAllowLocalTargets: false,
  rateLimitPerMinute: 1,
  logLevel: 'silent',
};

/** The document that `/openapi.json` serves, and the operations that it should describe. */
export async function describeApi() {
  const app = await buildApp(
    {
      config: CONFIG,
      db: standIn('the database'),
      sealer: standIn('the sealer'),
      certificateKeys: standIn('the certificate keys'),
      dispatcher: standIn('the dispatcher'),
      temporalHealth: async () => 'degraded',
      now: () => new Date(0),
    },
    pino({ level: CONFIG.logLevel }),
  );
  try {
    await app.ready();
    return { document: app.swagger(), operations: app.operations };
  } finally {
    await app.close();
  }
}
