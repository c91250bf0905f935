/** Which form of an answer a caller wants (RFC 9110 §12.5.1). */

type Range = { readonly type: string; readonly quality: number };

/**
 * The offered media type that the caller likes best; at equal liking the one offered first, and that one too where the
 * caller likes none: an answer in another form is more use than a refusal.
 *
 * @param accept the header, undefined where there is none
 * @param offered media types, the usual one first
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

/** The most exact range that covers the type decides. */
function qualityOf(type: string, ranges: readonly Range[]): number {
  for (const pattern of [type, `${type.split('/')[0]}/*`, '*/*']) {
    const range = ranges.find((candidate) => candidate.type === pattern);
    if (range) return range.quality;
  }
  return 0;
}

/** A quality that is none counts as no liking. */
function parseRange(text: string): Range {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1';
  return { type, quality: /^(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(weight) ? Number(weight) : 0 };
}
