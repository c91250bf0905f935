/**
 * Resolves names by DNS only. The machine's hosts file is not read: it could map a public name to a private address.
 */
import { Resolver } from 'node:dns/promises';

const TIMEOUT_MS = 1_500;
/**
 * A resolver reads the machine's name servers once, when it is made. They change under a process that runs for long, as
 * when its network does: with the old ones no name would resolve until the next start.
 */
const RENEWED_MS = 30_000;

/** All IPv4 and IPv6 addresses of a name. */
export type HostResolver = (hostname: string) => Promise<readonly string[]>;

type Lookup = Pick<Resolver, 'resolve4' | 'resolve6'>;

/**
 * @param open makes a resolver that asks the machine's present name servers; only tests give another one
 * @returns a resolver that rejects when a name has neither an IPv4 nor an IPv6 address, or no server answers in time
 */
export function createHostResolver(
  open: () => Lookup = () => new Resolver({ timeout: TIMEOUT_MS, tries: 1 }),
): HostResolver {
  let opened: { readonly lookup: Lookup; readonly atMs: number } | undefined;
  return async (hostname) => {
    const nowMs = performance.now();
    if (!opened || nowMs - opened.atMs >= RENEWED_MS) opened = { lookup: open(), atMs: nowMs };
    const { lookup } = opened;
    const answers = await Promise.allSettled([lookup.resolve4(hostname), lookup.resolve6(hostname)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length === 0) throw new Error('the name has no address');
    return addresses;
  };
}
