/**
 * The time of one object never runs back. The clocks of the processes differ, and a repeated step has the time of its
 * first try, so a change is dated by the clock or by what it follows, whichever is later.
 */
export const notBefore = (at: Date, earlier: Date): Date => (at < earlier ? earlier : at);
