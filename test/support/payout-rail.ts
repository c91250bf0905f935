/** A payout rail whose calls can be slow, lost or repeated. */
import type { PayoutRail } from '../../activities/providers/payout-rail.ts';
import type { NewEvidence } from '../../domain/settlement/evidence.ts';

/** A call that nobody has answered yet, and the activity that waits for it. */
type Call = {
  readonly answer: (answer: NewEvidence | undefined) => void;
  readonly lose: (error: Error) => void;
  activity: Promise<unknown>;
};

/** A rail whose answers wait until the test gives them. */
export function createRail() {
  const calls: Call[] = [];
  let isCalled: () => void = () => undefined;
  const rail: PayoutRail = {
    send: () =>
      new Promise((answer, lose) => {
        calls.push({ answer, lose, activity: Promise.resolve() });
        isCalled();
      }),
  };
  return {
    ...rail,
    count: (): number => calls.length,
    /** Waits until the activity calls the rail, or ends without a call. */
    untilCalled: async (activity: Promise<unknown>): Promise<void> => {
      const called = new Promise<void>((resolve) => {
        isCalled = resolve;
      });
      const before = calls.length;
      await Promise.race([activity, called]);
      const call = calls[before];
      if (call) call.activity = activity;
    },
    /** The oldest call is answered, and the activity records it. */
    answer: async (answer: NewEvidence | undefined): Promise<void> => {
      const call = calls.shift();
      call?.answer(answer);
      await call?.activity;
    },
    /** The oldest call is lost with its activity. */
    lose: async (): Promise<void> => {
      const call = calls.shift();
      call?.lose(new Error('the call is lost'));
      await call?.activity.catch(() => undefined);
    },
  };
}
