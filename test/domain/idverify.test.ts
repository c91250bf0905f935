import { expect, test } from 'vitest';
import { rejectionReasonOf } from '../../domain/idverify.ts';

test('a rejection reason has known labels only, each once, and a bounded length', () => {
  expect(rejectionReasonOf(['<script>', 'Mr. Brown', 'FORGERY', 'FORGERY', 'x'.repeat(200), 'DOCUMENT_TEMPLATE'])).toBe(
    'FORGERY, DOCUMENT_TEMPLATE',
  );
  expect(rejectionReasonOf([])).toBe('REJECTED_BY_PROVIDER');
  expect(rejectionReasonOf(Array.from({ length: 50 }, (_, index) => `L${'X'.repeat(40)}${index}`)).length).toBeLessThan(
    500,
  );
});
