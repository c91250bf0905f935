/**
 * Resolves names by DNS only. The machine's hosts file is not read: it could map a public name to a private address.
 */
import { Resolver } from 'node:dns/promises';

const TIMEOUT_MS = 1_500;

/** All IPv4 and IPv6 addresses of a name. */
export type HostResolver = (hostname: string) => Promise<readonly string[]>;

/**
 * @returns a resolver that rejects when a name has neither an IPv4 nor an IPv6 address, or no server answers in time
 */
export function createHostResolver(): HostResolver {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: 1 });
  return async (hostname) => {
    const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length === 0) throw new Error('the name has no address');
    return addresses;
  };
}
