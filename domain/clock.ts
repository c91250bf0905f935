/**
 * The times of one object's changes never decrease. The clocks of the processes differ, and a repeated step has the
 * time of its first attempt. So a change gets the later of two times: the clock's, and that of the change before it.
 */
export const notBefore = (at: Date, earlier: Date): Date => (at < earlier ? earlier : at);
