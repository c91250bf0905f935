/** The media type that a caller prefers (RFC 9110 §12.5.1). */

type Range = { readonly type: string; readonly quality: number };

/**
 * The offered media type with the highest quality; of equal ones the first. If the caller accepts none of them, it gets
 * the first: an answer in another form helps more than a refusal.
 *
 * @param accept the Accept header, if there is one
 * @param offered media types, the default first
 */
export function preferredType<Type extends string>(
  accept: string | undefined,
  offered: readonly [Type, ...Type[]],
): Type {
  const ranges = (accept ?? '*/*').split(',').map(parseRange);
  let [best] = offered;
  let bestQuality = 0;
  for (const type of offered) {
    const quality = qualityOf(type, ranges);
    if (quality > bestQuality) [best, bestQuality] = [type, quality];
  }
  return best;
}

/** The quality of the most specific range that covers the type. */
function qualityOf(type: string, ranges: readonly Range[]): number {
  for (const pattern of [type, `${type.split('/')[0]}/*`, '*/*']) {
    const range = ranges.find((candidate) => candidate.type === pattern);
    if (range) return range.quality;
  }
  return 0;
}

/** An invalid quality counts as 0. */
function parseRange(text: string): Range {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1';
  return { type, quality: /^(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(weight) ? Number(weight) : 0 };
}
