/**
 * Refuses new commands while too much committed work waits in the outbox (contract §2): the service accepts no more
 * than it carries out. Reads are answered, and provider events too, because their evidence must be kept. Each process
 * counts the rows at most once a second, so the outbox may exceed the limit by what is accepted in a second.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { hasMoreOutboxRows } from '../../db/queries/outbox.ts';
import { asProcess } from '../../db/tenant.ts';
import { DomainError } from '../../domain/error.ts';
import type { ApiDeps } from '../deps.ts';
import { throwPaymentFaults } from '../http/priced-body.ts';
import { refusalByRules } from '../http/validation.ts';
import { isCommand } from '../route-config.ts';

const COUNT_VALID_MS = 1_000;

export const outboxLimit = fp(async (app: FastifyInstance, { deps }: { deps: ApiDeps }) => {
  const isFull = createFullCheck(deps);
  app.addHook('preHandler', (request, _reply, done) => {
    const access = request.routeOptions.config.access;
    if (!access || !isCommand(request.method, access)) return done();
    isFull()
      .then((full) => full && refuse(deps, request))
      .then(() => done(), done);
  });
});

/** @throws DomainError `temporarily_unavailable`, unless the request is invalid, because 422 precedes 503 */
function refuse(deps: ApiDeps, request: FastifyRequest): never {
  throwPaymentFaults(deps, request);
  const invalid = refusalByRules(request);
  if (invalid) throw invalid;
  throw new DomainError(
    'temporarily_unavailable',
    {},
    'Too much accepted work waits to be carried out. Nothing was stored. Repeat the request after Retry-After.',
  );
}

/** @returns whether the outbox has more rows than it may have; rejects when PostgreSQL cannot be read */
function createFullCheck({ db, config }: ApiDeps): () => Promise<boolean> {
  let latest: { readonly atMs: number; readonly isFull: Promise<boolean> } | undefined;
  return () => {
    const nowMs = performance.now();
    if (!latest || nowMs - latest.atMs >= COUNT_VALID_MS) {
      const counted = { atMs: nowMs, isFull: asProcess(() => hasMoreOutboxRows(db, config.outboxMaxRows)) };
      latest = counted;
      counted.isFull.catch(() => {
        // A failure is not kept: the next request counts again.
        if (latest === counted) latest = undefined;
      });
    }
    return latest.isFull;
  };
}
