/** Every route that the application offers, as declared; what the tests compare with `operations.csv`. */
import type { FastifyInstance, FastifySchema } from 'fastify';
import fp from 'fastify-plugin';
import type { RouteConfig } from '../route-config.ts';

export type Operation = {
  readonly method: string;
  /** As in the specification, `/v1/orgs/{org_id}`. */
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

export const operationList = fp(async (app: FastifyInstance) => {
  const operations: Operation[] = [];
  app.decorate('operations', operations);
  app.addHook('onRoute', ({ method, url, config, schema = {} }) => {
    const access = config?.access;
    if (!access || access.internal) return;
    const path = url.replace(/:([A-Za-z_]+)/g, '{$1}');
    for (const name of [method].flat()) operations.push({ method: name, path, access, schema });
  });
});
