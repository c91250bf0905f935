/**
 * Temporal's `Duration` type comes from `ms`, whose types the NodeNext export map hides: without this
 * declaration every duration in workflow code decays to `any` and `sleep('7 dayz')` type-checks.
 */
declare module 'ms' {
  type Unit =
    | 'ms'
    | 's'
    | 'm'
    | 'h'
    | 'd'
    | 'second'
    | 'seconds'
    | 'minute'
    | 'minutes'
    | 'hour'
    | 'hours'
    | 'day'
    | 'days';
  export type StringValue = `${number}` | `${number}${Unit}` | `${number} ${Unit}`;
  // biome-ignore lint/style/noDefaultExport: the declared package exports a default.
  export default function ms(value: StringValue): number;
}
