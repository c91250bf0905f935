/**
 * The `Idempotency-Key` header: 16-128 characters. On v1 and consumer routes the first one must be a letter or a digit
 * (contract §1).
 */
import { z } from 'zod';
import { pattern } from './common.ts';

const LENGTH_MIN = 16;
const LENGTH_MAX = 128;
const DESCRIPTION =
  'One high-entropy key per command. Its first use binds it permanently: repeat it with the same bytes only.';
const FORM = 'letters, digits, dots, underscores, colons and hyphens';
const EXAMPLE = '0191d1b0-7c1e-7f65-9d5c-2f6f6f1c3a10';

const key = (expression: RegExp, form: string) =>
  pattern(expression, [LENGTH_MIN, LENGTH_MAX], form).meta({ description: DESCRIPTION, example: EXAMPLE });

export const IdempotencyKeyV2 = key(/^[A-Za-z0-9._:-]+$/, FORM);
export const IdempotencyKey = key(/^[A-Za-z0-9][A-Za-z0-9._:-]+$/, `${FORM}, beginning with a letter or a digit`);

export const RequiredIdempotencyKeyV2 = z.object({ 'idempotency-key': IdempotencyKeyV2 });
export const RequiredIdempotencyKey = z.object({ 'idempotency-key': IdempotencyKey });
export const OptionalIdempotencyKey = z.object({ 'idempotency-key': IdempotencyKey.optional() });
