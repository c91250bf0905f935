/** What is wrong with a request, as FastAPI's HTTPValidationError says it (contract §2). */
import type { FieldFault } from '../../domain/error.ts';

/** One entry of an HTTPValidationError; `msg` never contains a submitted value. */
export type RequestFault = {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
};

/** A malformed part of a request, found outside its schema. Answered by 422. */
export class InvalidRequestError extends Error {
  readonly faults: readonly RequestFault[];

  constructor(faults: readonly RequestFault[]) {
    super(faults.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; '));
    this.name = 'InvalidRequestError';
    this.faults = faults;
  }
}

export const missingField = (loc: readonly string[]): RequestFault => ({ loc, msg: 'Field required', type: 'missing' });

/** A rule completes a sentence about the value. */
export const valueError = (rule: string) => ({ msg: `Value error, ${rule}`, type: 'value_error' });

/** A broken rule of the domain, at its place in the request: every command is a request's body. */
export const faultOfField = ({ field, rule }: FieldFault): RequestFault => ({
  loc: ['body', ...(field === null ? [] : field.split('.'))],
  ...valueError(rule),
});
