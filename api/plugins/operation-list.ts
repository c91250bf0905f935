/**
 * Every route of the application, as it was declared. The 405 answers, the OpenAPI document, the reference page and the
 * tests all read this one list. A route that declares no access is not registered: the application does not start.
 */
import type { FastifyInstance, FastifySchema } from 'fastify';
import fp from 'fastify-plugin';
import { z } from 'zod';
import type { RouteConfig } from '../route-config.ts';

export type Operation = {
  readonly method: string;
  /** As Fastify has it: `/v1/orgs/:org_id`. */
  readonly url: string;
  /** As the OpenAPI document has it: `/v1/orgs/{org_id}`. */
  readonly path: string;
  readonly access: RouteConfig;
  readonly schema: FastifySchema;
};

declare module 'fastify' {
  interface FastifyInstance {
    /** In the order of registration, without the fallback answers. */
    operations: readonly Operation[];
  }
}

/** Of operations that declare no parameters. Pages, probes and providers' webhooks ignore unknown ones. */
const NoQuery = z.strictObject({});
const isClosed = ({ auth }: RouteConfig): boolean =>
  auth === 'api_key' || auth === 'optional_api_key' || auth === 'session';

/** Register it before the first route. A route without access makes its own registration throw. */
export const operationList = fp(async (app: FastifyInstance) => {
  const operations: Operation[] = [];
  app.decorate('operations', operations);
  app.addHook('onRoute', (route) => {
    const { method, url, config } = route;
    const access = config?.access;
    if (!access) throw new Error(`${String(method)} ${url} declares no access`);
    if (access.internal) return;
    const schema: FastifySchema = isClosed(access) ? { querystring: NoQuery, ...route.schema } : (route.schema ?? {});
    route.schema = schema;
    const path = url.replace(/:([A-Za-z_]+)/g, '{$1}');
    for (const name of [method].flat()) operations.push({ method: name, url, path, access, schema });
  });
});
