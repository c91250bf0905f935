/** The faults of an invalid request, in the form of FastAPI's HTTPValidationError (contract §2). */
import { type FieldFault, REQUIRED } from '../../domain/error.ts';

/** One entry of an HTTPValidationError; `msg` never contains a submitted value. */
export type RequestFault = {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
};

/** The most faults of one answer (contract §2). */
export const FAULTS_MAX = 100;

/** An invalid request whose faults were found outside its schema. It is answered by 422. */
export class InvalidRequestError extends Error {
  readonly faults: readonly RequestFault[];

  constructor(faults: readonly RequestFault[]) {
    super(faults.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; '));
    this.name = 'InvalidRequestError';
    this.faults = faults;
  }
}

export const missingField = (loc: RequestFault['loc']): RequestFault => ({
  loc,
  msg: 'Field required',
  type: 'missing',
});

/** @param rule completes the sentence "the value …" */
export const valueError = (rule: string) => ({ msg: `Value error, ${rule}`, type: 'value_error' });

/** The fault of a field that breaks a rule of the domain. The fields of a command are those of the body. */
export function faultOfField({ field, rule }: FieldFault): RequestFault {
  const parts = field === null ? [] : field.split('.').map((part) => (/^[0-9]+$/.test(part) ? Number(part) : part));
  const loc = ['body', ...parts];
  return rule === REQUIRED ? missingField(loc) : { loc, ...valueError(rule) };
}
