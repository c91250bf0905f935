/** The network between the service's processes and their servers. Each link can be cut, slowed and reset. */
import { type Forwarder, type LinkDisturbance, startForwarder } from './forwarder.ts';

/** Who is connected to what. */
export const LINKS = ['api-postgres', 'worker-postgres', 'api-temporal', 'worker-temporal'] as const;
export type Link = (typeof LINKS)[number];

export type Network = {
  /** The port on 127.0.0.1 at which a link begins. */
  port(link: Link): number;
  disturb(link: Link, how: LinkDisturbance): void;
  heal(link: Link): void;
  close(): void;
};

/**
 * @param ports where PostgreSQL and Temporal listen
 * @param onDisturbance is called when a link was disturbed or healed
 */
export async function startNetwork(
  ports: Readonly<Record<'postgres' | 'temporal', number>>,
  onDisturbance: () => void,
): Promise<Network> {
  const links = {
    'api-postgres': await startForwarder(ports.postgres),
    'worker-postgres': await startForwarder(ports.postgres),
    'api-temporal': await startForwarder(ports.temporal),
    'worker-temporal': await startForwarder(ports.temporal),
  } satisfies Record<Link, Forwarder>;
  return {
    port: (link) => links[link].port,
    disturb: (link, how) => {
      links[link].disturb(how);
      onDisturbance();
    },
    heal: (link) => {
      links[link].heal();
      onDisturbance();
    },
    close: () => {
      for (const link of LINKS) links[link].close();
    },
  };
}
