/** A known address with a method that it does not offer: 405 with `Allow` (contract §2), where Fastify answers 404. */
import type { FastifyInstance } from 'fastify';
import { DomainError } from '../../domain/error.ts';
import type { Operation } from './operation-list.ts';

/** Adds a 405 for every method that an address does not offer. Call it after the last route. */
export function registerMethodFallbacks(app: FastifyInstance): void {
  for (const [url, methods] of methodsByUrl(app.operations)) {
    const allow = allowOf(methods);
    app.route({
      url,
      method: app.supportedMethods.filter((method) => !methods.has(method)),
      schema: { hide: true },
      config: { access: { auth: 'none', budget: 'page', internal: true } },
      onRequest: async (_request, reply) => {
        reply.header('Allow', allow);
        throw new DomainError('method_not_allowed');
      },
      handler: async () => undefined,
    });
  }
}

/**
 * The methods of an address, as `Allow` lists them. It serves methods that the router does not know, for which no
 * fallback can be registered.
 *
 * @returns undefined for an unknown address
 */
export function methodsAt({ operations }: FastifyInstance, address: string): string | undefined {
  const found = [...methodsByUrl(operations)].find(([url]) => patternOf(url).test(address));
  return found && allowOf(found[1]);
}

function methodsByUrl(operations: readonly Operation[]): Map<string, Set<string>> {
  const methodsOf = new Map<string, Set<string>>();
  for (const { url, method } of operations) methodsOf.set(url, (methodsOf.get(url) ?? new Set()).add(method));
  return methodsOf;
}

const patternOf = (url: string): RegExp =>
  new RegExp(`^${url.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/:[A-Za-z_]+/g, '[^/]+')}$`);

const allowOf = (methods: ReadonlySet<string>): string => [...methods].sort().join(', ');
