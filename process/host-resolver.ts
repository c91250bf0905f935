/** Resolves names by DNS alone, never by the machine's own tables, where a name of ours could mean something private. */
import { Resolver } from 'node:dns/promises';

const TIMEOUT_MS = 1_500;

/** All IPv4 and IPv6 addresses of a name. */
export type HostResolver = (hostname: string) => Promise<readonly string[]>;

/** @returns a resolver that rejects when a name has no address of either kind, or nobody answers */
export function createHostResolver(): HostResolver {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: 1 });
  return async (hostname) => {
    const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length === 0) throw new Error('the name has no address');
    return addresses;
  };
}
