/**
 * Temporal's `Duration` type comes from `ms`, whose types the NodeNext export map hides: without this
 * declaration every duration in workflow code decays to `any` and `sleep('7 dayz')` type-checks.
 */
declare module 'ms' {
  export type StringValue = `${number} ${'seconds' | 'minutes' | 'hours' | 'days'}`;
  // biome-ignore lint/style/noDefaultExport: the declared package exports a default.
  export default function ms(value: StringValue): number;
}
