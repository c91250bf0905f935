/** @returns as `compute`, whose result for a text never changes: it runs once for each of the last so many texts */
export function remembered<Result>(textsMax: number, compute: (text: string) => Result): (text: string) => Result {
  const results = new Map<string, { readonly result: Result }>();
  return (text) => {
    const known = results.get(text);
    if (known) return known.result;
    const result = compute(text);
    if (results.size >= textsMax) results.clear();
    results.set(text, { result });
    return result;
  };
}
