import { expect, test } from 'vitest';
import { PAGE } from '../../domain/page.ts';

test('a list takes a limit from 1 to 100, by default 50, and an offset up to 1 000 000', () => {
  expect(PAGE).toEqual({ limitMin: 1, limitMax: 100, limitDefault: 50, offsetMax: 1_000_000 });
});
