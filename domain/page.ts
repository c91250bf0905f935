/** Bounds of every paged list (specification, Limits). */
export const PAGE = { limitMin: 1, limitMax: 100, limitDefault: 50, offsetMax: 1_000_000 } as const;

export type Page = { readonly limit: number; readonly offset: number };

/** One page of a list, and how many objects the whole list has. */
export type Paged<T> = { readonly items: readonly T[]; readonly total: number };
