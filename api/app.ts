/**
 * The HTTP edge: authenticate, authorize, validate, gate, commit, answer. The `register` lines below are the table of
 * contents. The application does not start with a route that declares no access.
 */
import { type FastifyBaseLogger, type FastifyInstance, fastify, LogController } from 'fastify';
import fp from 'fastify-plugin';
import { createSerializerCompiler, type FastifyPluginAsyncZodOpenApi, validatorCompiler } from 'fastify-zod-openapi';
import type { ApiDeps } from './deps.ts';
import { createClientAddress } from './http/client-address.ts';
import { createClientErrorHandler } from './http/client-error.ts';
import { limitConnections } from './http/connection-limit.ts';
import { createWaitingRead } from './http/prefer-wait.ts';
import { parseQuery, routedAddress } from './http/query-string.ts';
import { openapi } from './openapi/document.ts';
import { loadAssets } from './pages/asset.ts';
import type { Frame } from './pages/layout.ts';
import { createNotFoundPage } from './pages/problem.ts';
import { authentication } from './plugins/authentication.ts';
import { consumerOrigin } from './plugins/consumer-origin.ts';
import { answerHeaders, http, requestIdOf } from './plugins/http.ts';
import { addressPlaces, IN_FLIGHT, organizationPlaces } from './plugins/in-flight.ts';
import { EVENT_LOOP_DELAY_MAX_MS, loadShedding } from './plugins/load-shedding.ts';
import { registerMethodFallbacks } from './plugins/method-fallback.ts';
import { metrics } from './plugins/metrics.ts';
import { operationList } from './plugins/operation-list.ts';
import { outboxLimit } from './plugins/outbox-limit.ts';
import { rateLimit } from './plugins/rate-limit.ts';
import { remoteGate } from './plugins/remote-gate.ts';
import { requestEnd } from './plugins/request-end.ts';
import { acceptSignedBodies } from './plugins/signed-body.ts';
import { tracing } from './plugins/tracing.ts';
import { LOW_PRIORITY, turn } from './plugins/turn.ts';
import { unreadAnswer } from './plugins/unread-answer.ts';
import { apiKeyRoutes } from './routes/api-key.ts';
import { bankledgerEventRoutes } from './routes/bankledger-event.ts';
import { banklinkRoutes } from './routes/banklink.ts';
import { capabilityRoutes } from './routes/capability.ts';
import { cardprocEventRoutes } from './routes/cardproc-event.ts';
import { caribbeanRoutes } from './routes/caribbean.ts';
import { certificateRoutes } from './routes/certificate.ts';
import { consumerRoutes } from './routes/consumer.ts';
import { corridorRoutes } from './routes/corridor.ts';
import { estimateRoutes } from './routes/estimate.ts';
import { eventRoutes } from './routes/event.ts';
import { feeRoutes } from './routes/fee.ts';
import { healthRoutes } from './routes/health.ts';
import { idverifyEventRoutes } from './routes/idverify-event.ts';
import { jwksRoutes } from './routes/jwks.ts';
import { launchGateRoutes } from './routes/launch-gate.ts';
import { meRoutes } from './routes/me.ts';
import { openapiRoutes } from './routes/openapi.ts';
import { organizationRoutes } from './routes/organization.ts';
import { pageRoutes } from './routes/page.ts';
import { paymentMethodRoutes } from './routes/payment-method.ts';
import { recipientRoutes } from './routes/recipient.ts';
import { sessionRoutes } from './routes/session.ts';
import { settlementRoutes } from './routes/settlement.ts';
import { settlementListRoutes } from './routes/settlement-list.ts';
import { testHelperRoutes } from './routes/test-helper.ts';
import { transferRoutes } from './routes/transfer.ts';
import { usageRoutes } from './routes/usage.ts';
import { verificationRoutes } from './routes/verification.ts';
import { walletRoutes } from './routes/wallet.ts';
import { webhookActionRoutes, webhookRoutes } from './routes/webhook.ts';
import { webhookDeliveryRoutes } from './routes/webhook-delivery.ts';
import { webhookReplayRoutes } from './routes/webhook-replay.ts';

export const LIMITS = {
  bodyBytes: 64 * 1024,
  headerBytes: 16 * 1024,
  /** As long as the headers may be, so that an id that is too long is always answered by 422 and never by 414. */
  pathParameterLength: 16 * 1024,
  requestTimeoutMs: 15_000,
  headersTimeoutMs: 5_000,
  /**
   * Short, so that few slow connections are ended at once: ending a thousand together would delay every other caller.
   */
  connectionsCheckingIntervalMs: 200,
  keepAliveTimeoutMs: 10_000,
  /** The time without any traffic after which a connection is closed; longer than the longest wait of a read. */
  idleTimeoutMs: 45_000,
  /** How long a caller may take to read an answer. */
  answerTimeoutMs: 30_000,
  /** Bytes of answers that wait to be read, in all. */
  waitingBytesMax: 64 * 1024 * 1024,
  connectionsMax: 4_000,
  connectionsMaxOfAddress: 1_000,
} as const;

/**
 * Builds the application. `main.ts` makes it listen.
 *
 * @throws when a route declares no access
 */
export async function buildApp(deps: ApiDeps, logger: FastifyBaseLogger): Promise<FastifyInstance> {
  const app = createServer(deps, logger);
  await app.register(operationList);
  const frame: Frame = { runtime: deps.runtime, assets: await loadAssets() };
  await app.register(requestEnd);
  await app.register(http, { deps, sendNotFoundPage: createNotFoundPage(frame) });
  await app.register(unreadAnswer, LIMITS);
  await app.register(tracing, { deps });
  await app.register(openapi, { deps });
  await app.register(loadShedding, { delayMaxMs: deps.eventLoopDelayMaxMs ?? EVENT_LOOP_DELAY_MAX_MS });
  const inFlight = deps.inFlight ?? IN_FLIGHT;
  await app.register(addressPlaces, inFlight);
  await app.register(authentication, { deps });
  await app.register(organizationPlaces, inFlight);
  // Before the rate limit: a preflight that is allowed is answered here, and counts as no unknown method.
  await app.register(consumerOrigin, { deps });
  await app.register(rateLimit, { deps });
  await app.register(turn, deps.lowPriority ?? LOW_PRIORITY);
  await app.register(remoteGate, { deps });
  await app.register(outboxLimit, { deps });
  // The last of these hooks: what the others do before the answer is sent is part of its duration.
  await app.register(metrics, { deps });

  const readWaiting = createWaitingRead(app, deps.changes);
  await registerRoutes(app, {
    settlement: settlementRoutes(deps, readWaiting),
    settlementList: settlementListRoutes(deps),
    caribbean: caribbeanRoutes(deps),
  });
  await app.register(async (signed) => {
    acceptSignedBodies(signed);
    await registerRoutes(signed, {
      cardprocEvent: cardprocEventRoutes(deps),
      bankledgerEvent: bankledgerEventRoutes(deps),
      idverifyEvent: idverifyEventRoutes(deps),
    });
  });
  await registerRoutes(app, {
    banklink: banklinkRoutes(deps),
    testHelper: testHelperRoutes(deps),
    estimate: estimateRoutes(deps),
    paymentMethod: paymentMethodRoutes(deps),
    fee: feeRoutes(deps),
    corridor: corridorRoutes(deps),
    certificate: certificateRoutes(deps),
    jwks: jwksRoutes(deps),
    organization: organizationRoutes(deps),
    apiKey: apiKeyRoutes(deps),
    me: meRoutes(deps),
    recipient: recipientRoutes(deps),
    verification: verificationRoutes(deps),
    wallet: walletRoutes(deps),
    session: sessionRoutes(deps),
    consumer: consumerRoutes(deps),
    transfer: transferRoutes(deps, readWaiting),
    capability: capabilityRoutes,
    launchGate: launchGateRoutes(deps),
    webhook: webhookRoutes(deps),
    webhookAction: webhookActionRoutes(deps),
    webhookDelivery: webhookDeliveryRoutes(deps),
    webhookReplay: webhookReplayRoutes(deps),
    event: eventRoutes(deps),
    usage: usageRoutes(deps),
    health: healthRoutes(deps),
    page: pageRoutes(deps, frame),
    openapi: openapiRoutes(),
  });

  registerMethodFallbacks(app);
  return app;
}

/**
 * Routes share the context of `app`: they have no hooks of their own. They have names, because Fastify looks for a
 * plugin without one among all modules that are loaded.
 */
async function registerRoutes(
  app: FastifyInstance,
  plugins: Readonly<Record<string, FastifyPluginAsyncZodOpenApi>>,
): Promise<void> {
  for (const [name, routes] of Object.entries(plugins)) await app.register(fp(routes, { name }));
}

/** A server with our limits, JSON schemas and error answers, still without a route. */
function createServer(deps: ApiDeps, logger: FastifyBaseLogger): FastifyInstance {
  const clientAddressOf = createClientAddress(deps.config.trustedProxies);
  const app = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    genReqId: requestIdOf,
    exposeHeadRoutes: false,
    bodyLimit: LIMITS.bodyBytes,
    requestTimeout: LIMITS.requestTimeoutMs,
    keepAliveTimeout: LIMITS.keepAliveTimeoutMs,
    connectionTimeout: LIMITS.idleTimeoutMs,
    // Fastify would answer 503 itself while it closes, in a form of its own. What has arrived is answered (`drain.ts`).
    return503OnClosing: false,
    clientErrorHandler: createClientErrorHandler(answerHeaders(deps), ({ requestId, status, socket }) => {
      const { logged: client } = clientAddressOf({ rawHeaders: [], socket });
      logger.info({ request_id: requestId, method: 'none', route: 'none', status, duration_ms: 0, client }, 'request');
    }),
    rewriteUrl: ({ url = '/' }) => routedAddress(url),
    routerOptions: { maxParamLength: LIMITS.pathParameterLength, querystringParser: parseQuery },
    http: {
      headersTimeout: LIMITS.headersTimeoutMs,
      connectionsCheckingInterval: LIMITS.connectionsCheckingIntervalMs,
      maxHeaderSize: LIMITS.headerBytes,
      // Node would answer a missing Host header itself. `plugins/http.ts` answers it with a problem.
      requireHostHeader: false,
    },
  });
  app.server.maxConnections = LIMITS.connectionsMax;
  // Node would read a thousand headers and ignore the next. `maxHeaderSize` bounds their number.
  app.server.maxHeadersCount = 0;
  limitConnections(app.server, { maxOfAddress: LIMITS.connectionsMaxOfAddress, trusted: deps.config.trustedProxies });
  // Node would answer 417 itself to an `Expect` other than `100-continue`, without a log line and without counting it.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(createSerializerCompiler({ stringify: (value) => JSON.stringify(value) }));
  return app;
}
