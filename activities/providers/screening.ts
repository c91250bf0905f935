/**
 * Screening as the local sandbox simulates it: a word in the payee's name. It compares what people see, not how it was
 * written: other widths and cases, invisible characters, accents and look-alikes of other scripts make no other name.
 */
import unhomoglyph from 'unhomoglyph';
import { SANDBOX_NAMES } from '../../domain/sandbox/input.ts';

/** Characters that show nothing by themselves: of formatting, and marks on other characters. */
const UNSEEN = /[\p{Cf}\p{Default_Ignorable_Code_Point}\p{M}]/gu;

/** The replacement of a letter can have a mark, too: `Ø` is an `O` with a stroke. */
const withoutLookAlikes = (text: string): string => unhomoglyph(text.replace(UNSEEN, '')).replace(UNSEEN, '');

/**
 * Texts that look alike have one skeleton (Unicode TR39). Look-alikes are replaced in both cases: `Ν` is an `N`, and
 * `ν` is a `v`. A capital I and a small L look alike as well, and the first is the second in lower case.
 */
const skeletonOf = (text: string): string =>
  withoutLookAlikes(withoutLookAlikes(text.normalize('NFKD')).toLowerCase()).replaceAll('i', 'l');

const HIT = skeletonOf(SANDBOX_NAMES.screeningHit);

/** In capitals too: a small letter need not look like what its capital looks like, such as the Cyrillic `т`. */
export const isScreeningHit = (name: string): boolean =>
  [name, name.toUpperCase()].some((text) => skeletonOf(text).includes(HIT));
