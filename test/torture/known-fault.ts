/**
 * The faults that were known before the suite was built, for docs/torture.md: what today's suite said about the commit
 * before they were fixed, and what fixed them.
 */

/** The last commit before the fixes. */
export const FAULTY_COMMIT = '2d192ef';

export type KnownFault = {
  readonly fault: string;
  /** The run and the scenario of it that showed the fault. */
  readonly seed: number;
  readonly scenario: number;
  /** What the run said about the scenario. */
  readonly said: string;
  /** The commit that fixed it. */
  readonly fixedBy: string;
};

export const KNOWN_FAULTS: readonly KnownFault[] = [
  {
    fault: 'Money that comes in while the settlement is held stays pending permanently when the settlement ends.',
    seed: 1,
    scenario: 35,
    said: 'compliance_hold shows 0 of 100000 received; it ends expired: received 100000, due 0, evidence pending',
    fixedBy: '12f7ca1',
  },
  {
    fault: 'A cancel books no refund of money that came early.',
    seed: 5,
    scenario: 44,
    said: 'a settlement that has ended holds money; canceled: received 50100, due 50000',
    fixedBy: '12f7ca1',
  },
  {
    fault: 'A cancel is refused in compliance_hold when early money covers the amount.',
    seed: 2,
    scenario: 43,
    said: 'a cancel is answered 409 state_conflict where only accepted and compliance_hold are possible',
    fixedBy: '12f7ca1',
  },
  {
    fault: 'The payee is changed after acceptance.',
    seed: 1,
    scenario: 10,
    said: 'funded, then failed: the payout was sent to the name of the changed recipient, and that name is refused',
    fixedBy: '064b8a7',
  },
  {
    fault: "A provider's ordinary event with null in an optional field is refused.",
    seed: 1,
    scenario: 28,
    said: 'answered 422: currency and metadata should not be null',
    fixedBy: '9ebacc9',
  },
  {
    fault: 'A cancellation in Temporal UI ends the run, and the settlement has none.',
    seed: 1,
    scenario: 41,
    said: 'it stays awaiting_funds; an open settlement has no run',
    fixedBy: 'a08f748, 40397c0',
  },
  {
    fault: 'A second cancel is refused.',
    seed: 1,
    scenario: 30,
    said: 'canceled, and the second cancel is answered 409',
    fixedBy: '12f7ca1',
  },
  {
    fault: 'One read contradicts itself: the row and its history are read by two statements.',
    seed: 2,
    scenario: 50,
    said: 'a read is one moment: awaiting_funds with the timeline accepted awaiting_funds funded',
    fixedBy: '655c0af',
  },
];

export type UnreachedFault = {
  readonly fault: string;
  readonly reason: string;
  /** The test that shows the fault. */
  readonly test: string;
  /** How it is known that the test fails without the fix. */
  readonly failed: string;
  readonly fixedBy: string;
};

export const UNREACHED_FAULTS: readonly UnreachedFault[] = [
  {
    fault: 'Forty settlements whose local activity fails stop the worker.',
    reason: 'no scenario makes an activity fail for a minute, and forty at once are too few scenarios of a run',
    test: 'test/e2e/failing-activity.test.ts',
    failed: 'as the commit of the fix says: the healthy settlement did not settle within 20 s',
    fixedBy: '9bd3015',
  },
  {
    fault: 'A payout that is sent again after a crash does not read the gates.',
    reason: 'no scenario revokes the evidence of a gate',
    test: 'test/activities/gate.test.ts, "is read again before a retried call to the rail"',
    failed: 'run again on 12f7ca1 with the product of its parent: it fails, as do 13 others of the fix',
    fixedBy: '12f7ca1',
  },
  {
    fault: 'A remote runtime answers 200 to dispute events other than created and closed, and loses them.',
    reason: 'every run is a local sandbox',
    test: 'test/api/remote.test.ts, "503 for a dispute event"',
    failed: 'as the commit of the fix says',
    fixedBy: '9ebacc9',
  },
];
