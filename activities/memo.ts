/**
 * Remembers what `compute` returns for a text. The result for a text must never change.
 *
 * @param textsMax how many texts are remembered; the next new one makes it forget all of them
 */
export function memoize<Result>(textsMax: number, compute: (text: string) => Result): (text: string) => Result {
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
