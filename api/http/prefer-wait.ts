/**
 * `Prefer: wait=N` (RFC 7240) on reads: the answer waits until the object changes, at most `WAIT_SECONDS_MAX`. With
 * `If-None-Match` it waits for an answer that the caller has not seen: a change between two reads is not missed. The
 * database notifies this process of a change. A notification can be missed, so a waiting read also reads again from
 * time to time.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ChangeListener } from '../../db/change-listener.ts';
import { createPlaces } from '../../db/places.ts';
import { createWakeUp } from '../../db/wake-up.ts';
import { isTerminal, type Settlement } from '../../domain/settlement/state.ts';
import { namesTag, taggedJson } from './conditional.ts';
import { sendRead } from './pending-read.ts';

const WAIT_SECONDS_MAX = 30;
const POLL_INTERVAL_MS = 2_000;
/** Waiting reads in one process: in all, of an organization, of an address. One more is answered at once. */
export const WAITERS = { max: 256, perOrganization: 16, perAddress: 64 } as const;

/** The wait that a Prefer header requests, at most the maximum; undefined without a valid wait. */
function preferredWaitMs(prefer: string | string[] | undefined): number | undefined {
  const seconds = /(?:^|,)\s*wait\s*=\s*"?([0-9]+)"?\s*(?:$|[,;])/i.exec([prefer ?? ''].flat().join(','))?.[1];
  return seconds === undefined ? undefined : Math.min(Number(seconds), WAIT_SECONDS_MAX) * 1_000;
}

type Readable = Pick<Settlement, 'settlementId' | 'version' | 'status'>;

type Wait<T> = {
  readonly orgId: string;
  readonly settlementId: string;
  readonly read: () => Promise<T>;
  readonly waitMs: number;
  /** Whether the caller has seen this answer; undefined where the caller does not say what it has seen. */
  readonly isSeen: ((value: T) => boolean) | undefined;
};

/** `isApplied` is false if the limits left no room to wait. */
type Waited<T> = { readonly latest: T; readonly isApplied: boolean };

/** Answers a read of a settlement, after a wait if the caller prefers one; then with `Preference-Applied`. */
export type WaitingRead = <T extends Readable>(
  request: FastifyRequest,
  reply: FastifyReply,
  of: {
    readonly orgId: string;
    /** Resolves the caller's id, if it is not the settlement's. */
    readonly settlementId?: string;
    readonly read: () => Promise<T>;
    /** The answer that the caller gets. */
    readonly show: (value: T) => unknown;
  },
) => Promise<FastifyReply>;

/**
 * All waiting reads of a process share its limits.
 *
 * @param app when it closes, every waiting read is answered with the latest state
 */
export function createWaitingRead(
  app: Pick<FastifyInstance, 'addHook'>,
  changes: Pick<ChangeListener, 'subscribe'>,
): WaitingRead {
  const waitForChange = createChangeWaiter(app, changes);
  return async (request, reply, { orgId, read, show, ...of }) => {
    const waitMs = preferredWaitMs(request.headers['prefer']);
    if (waitMs === undefined) {
      const now = await read();
      return sendRead(request, reply, now, show(now));
    }
    const { settlementId } = of.settlementId === undefined ? await read() : { settlementId: of.settlementId };
    const seen = request.headers['if-none-match'];
    const isSeen =
      seen === undefined
        ? undefined
        : (value: Parameters<typeof show>[0]) => namesTag(seen, taggedJson(show(value)).etag);
    const { latest, isApplied } = await waitForChange(request, { orgId, settlementId, read, waitMs, isSeen });
    if (isApplied) reply.header('Preference-Applied', `wait=${waitMs / 1_000}`);
    return sendRead(request, reply, latest, show(latest));
  };
}

/** @returns reads until there is a change, the wait is over, the caller has disconnected or nothing can change */
function createChangeWaiter(app: Pick<FastifyInstance, 'addHook'>, changes: Pick<ChangeListener, 'subscribe'>) {
  const room = createRoom();
  const waiting = new Set<() => void>();
  let isClosing = false;
  app.addHook('preClose', async () => {
    isClosing = true;
    for (const wake of waiting) wake();
  });
  return async <T extends Readable>(
    { raw, clientAddress: { limitKey } }: FastifyRequest,
    { orgId, settlementId, read, waitMs, isSeen }: Wait<T>,
  ): Promise<Waited<T>> => {
    if (!room.enter(orgId, limitKey)) return { latest: await read(), isApplied: false };
    const { wake, wait } = createWakeUp();
    const unsubscribe = changes.subscribe(settlementId, wake);
    waiting.add(wake);
    raw.once('close', wake);
    try {
      const end = performance.now() + waitMs;
      const first = await read();
      const isOld = isSeen ?? (({ version }: T) => version === first.version);
      let latest = first;
      while (isOld(latest) && !isTerminal(latest.status) && !raw.destroyed && !isClosing) {
        const leftMs = end - performance.now();
        if (leftMs <= 0) break;
        await wait(Math.min(POLL_INTERVAL_MS, leftMs));
        latest = await read();
      }
      return { latest, isApplied: true };
    } finally {
      unsubscribe();
      waiting.delete(wake);
      raw.off('close', wake);
      room.leave(orgId, limitKey);
    }
  };
}

function createRoom() {
  const organizations = createPlaces(WAITERS.perOrganization);
  const addresses = createPlaces(WAITERS.perAddress);
  let all = 0;
  return {
    enter(orgId: string, address: string): boolean {
      if (all >= WAITERS.max || !organizations.enter(orgId)) return false;
      if (!addresses.enter(address)) {
        organizations.leave(orgId);
        return false;
      }
      all += 1;
      return true;
    },
    leave(orgId: string, address: string): void {
      organizations.leave(orgId);
      addresses.leave(address);
      all -= 1;
    },
  };
}
