/**
 * The recipient and its verifications. The settlement's payee is frozen under one name. A verification about another
 * name was opened before the recipient was renamed.
 */
import { notBefore } from '../../domain/clock.ts';
import { verificationAfter } from '../../domain/recipient.ts';
import { recipientStatusAfter } from '../../domain/verification.ts';
import { type Clock, isOpen, type Move } from './move.ts';
import { type Check, type Identity, NAMES, type Name } from './situation.ts';

const DECISIONS = ['verified', 'rejected'] as const;
const WORDS: Readonly<Record<Name, string>> = { payee: "the payee's name", other: 'another name' };

/** @param changed is given the real time of the API process, which no recipient's last change is after */
const change = (
  clocks: readonly Clock[],
  words: string,
  isPossible: (identity: Identity) => boolean,
  changed: (identity: Identity, at: Date) => Identity,
): Move[] =>
  clocks.map((clock) => ({
    words: words + clock.words,
    aheadMs: clock.aheadMs,
    isPossible: (situation) => isOpen(situation) && isPossible(situation.identity),
    play: (situation) => {
      const { identity, now, settlement } = situation;
      const at = new Date(now + clock.aheadMs - settlement.clockOffsetMs);
      return { situation: { ...situation, identity: changed(identity, notBefore(at, identity.recipient.updatedAt)) } };
    },
  }));

export const deactivation = (clocks: readonly Clock[]): readonly Move[] =>
  change(
    clocks,
    'The recipient is deactivated',
    ({ recipient }) => recipient.isActive,
    (identity, updatedAt) => ({ ...identity, recipient: { ...identity.recipient, isActive: false, updatedAt } }),
  );

function checked(identity: Identity, name: Name, status: Check, time: Date): Identity {
  const { recipient, checks, openedAt, decisions, ...rest } = identity;
  const { [name]: opened, ...others } = openedAt;
  const earliest = opened ? notBefore(time, opened) : time;
  const at = status === 'open' ? earliest : afterDecisions(decisions, earliest);
  const verification = { status: status === 'open' ? 'pending' : status, subjectName: name } as const;
  const verificationStatus = recipientStatusAfter(recipient, verification, false);
  return {
    ...rest,
    recipient:
      verificationStatus === recipient.verificationStatus
        ? recipient
        : { ...recipient, verificationStatus, updatedAt: at },
    checks: { ...checks, [name]: status },
    openedAt: status === 'open' ? { ...others, [name]: at } : others,
    decisions: status === 'open' ? decisions : { ...decisions, [name]: { to: status, at } },
  };
}

/** A decision is dated later than each one before it. */
const afterDecisions = (decisions: Identity['decisions'], time: Date): Date =>
  Object.values(decisions).reduce((at, earlier) => notBefore(at, new Date(earlier.at.getTime() + 1)), time);

const decided = (clocks: readonly Clock[], name: Name): Move[] =>
  DECISIONS.flatMap((to) =>
    change(
      clocks,
      `A verification about ${WORDS[name]} is decided: ${to}`,
      ({ checks }) => checks[name] === 'open',
      (identity, at) => checked(identity, name, to, at),
    ),
  );

const reopened = (clocks: readonly Clock[]): Move[] =>
  change(
    clocks,
    'Another verification of the recipient is opened',
    ({ checks, recipient, checksLeft }) => recipient.isActive && checksLeft > 0 && checks[nameOf(recipient)] !== 'open',
    (identity, at) => ({
      ...checked(identity, nameOf(identity.recipient), 'open', at),
      checksLeft: identity.checksLeft - 1,
    }),
  );

const renamed = (clocks: readonly Clock[]): Move[] =>
  NAMES.flatMap((name) =>
    change(
      clocks,
      `The recipient is given ${WORDS[name]}`,
      ({ recipient }) => recipient.isActive && recipient.name !== name,
      ({ recipient, ...identity }, updatedAt) => ({
        ...identity,
        recipient: { ...recipient, name, verificationStatus: verificationAfter(recipient, { name }), updatedAt },
      }),
    ),
  );

const nameOf = ({ name }: Identity['recipient']): Name => (name === 'payee' ? 'payee' : 'other');

/** Verifications are decided. */
export const decisions = (names: readonly Name[], clocks: readonly Clock[]): readonly Move[] =>
  names.flatMap((name) => decided(clocks, name));

/** Verifications are decided and opened, and the recipient is renamed. */
export const verifications = (clocks: readonly Clock[]): readonly Move[] => [
  ...decisions(NAMES, clocks),
  ...reopened(clocks),
  ...renamed(clocks),
];
