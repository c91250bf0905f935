/** The arguments and options of a command: how the usage shows them, and how their texts become values. */
import path from 'node:path';

/** A value, or the rule that the text breaks, as the end of a sentence: "must be a port number." */
export type Reading<Value> = { readonly value: Value } | { readonly fault: string };

/** Turns the text of one argument or option into its value. The choices appear in the help. */
export type Reader<Value> = {
  readonly read: (text: string) => Reading<Value>;
  readonly choices?: readonly string[];
};

export type Parameter<Value> = {
  /** As the usage shows it: `<settlement-id>`, `--note <why>` or `--all`. */
  readonly syntax: string;
  readonly description: string;
  readonly isRequired: boolean;
  readonly choices: readonly string[];
  readonly fallback: string | undefined;
  /** @param given every text that the command line gives for it, in order */
  readonly read: (given: readonly string[]) => Reading<Value>;
};

export type Parameters = Readonly<Record<string, Parameter<unknown>>>;
export type ValuesOf<Takes extends Parameters> = {
  readonly [Name in keyof Takes]: Takes[Name] extends Parameter<infer Value> ? Value : never;
};

const MISSING = { fault: 'is required.' } as const;

export const text: Reader<string> = {
  read: (given) => (given.trim() === '' ? MISSING : { value: given.trim() }),
};

/** The path of a file. `npm run` changes into the clone, so a relative name begins where the caller was. */
export const file: Reader<string> = {
  read: (given) => {
    const reading = text.read(given);
    return 'fault' in reading ? reading : { value: path.resolve(process.env['INIT_CWD'] ?? '', reading.value) };
  },
};

export function oneOf<Value extends string>(choices: readonly Value[]): Reader<Value> {
  return {
    choices,
    read: (given) => {
      const value = choices.find((choice) => choice === given);
      return value === undefined ? { fault: `must be one of ${choices.join(', ')}.` } : { value };
    },
  };
}

export function wholeNumber(min: number, max: number): Reader<number> {
  return {
    read: (given) => {
      const value = Number(given.trim() || Number.NaN);
      return Number.isInteger(value) && value >= min && value <= max
        ? { value }
        : { fault: `must be a whole number from ${min} to ${max}.` };
    },
  };
}

export const positiveNumber: Reader<number> = {
  read: (given) => {
    const value = Number(given.trim() || Number.NaN);
    return value > 0 && Number.isFinite(value) ? { value } : { fault: 'must be a number above 0.' };
  },
};

const described = (syntax: string, description: string, { choices = [] }: Partial<Reader<unknown>> = {}) => ({
  syntax,
  description,
  choices,
  isRequired: false,
  fallback: undefined,
});

/** An option that is given twice is refused: one of its values would be ignored, perhaps the one that was meant. */
const readOne = <Value>(reader: Reader<Value>, [given = '', ...more]: readonly string[]): Reading<Value> =>
  more.length > 0 ? { fault: 'is given twice.' } : reader.read(given);

export const required = <Value>(syntax: string, description: string, reader: Reader<Value>): Parameter<Value> => ({
  ...described(syntax, description, reader),
  isRequired: true,
  read: (given) => (given.length === 0 ? MISSING : readOne(reader, given)),
});

export const optional = <Value>(
  syntax: string,
  description: string,
  reader: Reader<Value>,
): Parameter<Value | undefined> => ({
  ...described(syntax, description, reader),
  read: (given) => (given.length === 0 ? { value: undefined } : readOne(reader, given)),
});

/** @param fallback the text that is read when none is given */
export const withDefault = <Value>(
  syntax: string,
  description: string,
  reader: Reader<Value>,
  fallback: string,
): Parameter<Value> => ({
  ...described(syntax, description, reader),
  fallback,
  read: (given) => readOne(reader, given.length === 0 ? [fallback] : given),
});

/** An option that may be given several times. */
export const repeatable = <Value>(
  syntax: string,
  description: string,
  reader: Reader<Value>,
): Parameter<readonly Value[]> => ({
  ...described(syntax, description, reader),
  read: (given) => {
    const values: Value[] = [];
    for (const one of given) {
      const reading = reader.read(one);
      if ('fault' in reading) return reading;
      values.push(reading.value);
    }
    return { value: values };
  },
});

/** An option without a value. */
export const flag = (syntax: string, description: string): Parameter<boolean> => ({
  ...described(syntax, description),
  read: (given) => ({ value: given.length > 0 }),
});

/** How faults name a parameter: `<settlement-id>` or `--note`. */
export const nameOf = ({ syntax }: Pick<Parameter<unknown>, 'syntax'>): string => syntax.split(' ')[0] ?? syntax;
