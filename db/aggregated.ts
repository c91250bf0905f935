/** A value as PostgreSQL's JSON functions return it: moments and bigints are text. */
export type Aggregated<Value> = Value extends Date | bigint
  ? string
  : Value extends readonly (infer Item)[]
    ? readonly Aggregated<Item>[]
    : Value extends object
      ? { readonly [Key in keyof Value]: Aggregated<Value[Key]> }
      : Value;
