/** A known address with a method that it does not offer: 405 with `Allow` (contract §2), where Fastify says 404. */
import type { FastifyInstance } from 'fastify';
import { DomainError } from '../../domain/error.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** The methods of an address, as `Allow` lists them; undefined where there is no such address. For methods that the router does not know. */
    methodsAt(address: string): string | undefined;
  }
}

/**
 * Watches which methods each address gets.
 *
 * @returns registers the 405s; call it after the last route
 */
export function collectMethods(app: FastifyInstance): () => void {
  const methodsOf = new Map<string, Set<string>>();
  app.addHook('onRoute', (route) => {
    if (route.config?.access?.internal) return;
    const methods = methodsOf.get(route.url) ?? new Set();
    for (const method of [route.method].flat()) methods.add(method);
    methodsOf.set(route.url, methods);
  });
  app.decorate('methodsAt', (address) => {
    const found = [...methodsOf].find(([url]) =>
      new RegExp(`^${url.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/:[A-Za-z_]+/g, '[^/]+')}$`).test(address),
    );
    return found && allowOf(found[1]);
  });
  return () => {
    for (const [url, methods] of [...methodsOf]) {
      const allow = allowOf(methods);
      app.route({
        url,
        method: app.supportedMethods.filter((method) => !methods.has(method)),
        schema: { hide: true },
        config: { access: { auth: 'none', internal: true } },
        onRequest: async (_request, reply) => {
          reply.header('Allow', allow);
          throw new DomainError('method_not_allowed');
        },
        handler: async () => undefined,
      });
    }
  };
}

const allowOf = (methods: ReadonlySet<string>): string => [...methods].sort().join(', ');
