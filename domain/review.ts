/** An operator's decision about a payout whose outcome stayed unknown (contract §6). */
export const RESOLUTION_OUTCOMES = ['paid', 'refused'] as const;

export type Resolution = {
  readonly outcome: (typeof RESOLUTION_OUTCOMES)[number];
  /** Who decided, and how they know it. Never shown to partners. */
  readonly operator: string;
  readonly note: string;
};

const OPERATOR_LENGTH_MAX = 64;
const NOTE_LENGTH_MAX = 500;
const CONTROL_CHARACTER = /\p{Cc}/u;

/** The first rule that a resolution breaks; undefined if it is valid. It comes from outside, so types are checked. */
export function resolutionFault(
  given: Readonly<Partial<Record<keyof Resolution, unknown>>> | undefined,
): string | undefined {
  if (!RESOLUTION_OUTCOMES.some((outcome) => outcome === given?.outcome))
    return `outcome must be ${RESOLUTION_OUTCOMES.join(' or ')}`;
  if (!isLine(given?.operator, OPERATOR_LENGTH_MAX))
    return `operator must be one line of 1 to ${OPERATOR_LENGTH_MAX} characters`;
  if (!isLine(given?.note, NOTE_LENGTH_MAX)) return `note must be one line of 1 to ${NOTE_LENGTH_MAX} characters`;
  return undefined;
}

const isLine = (value: unknown, lengthMax: number): boolean =>
  typeof value === 'string' &&
  value.trim() !== '' &&
  value.length <= lengthMax &&
  value.isWellFormed() &&
  !CONTROL_CHARACTER.test(value);
