/**
 * SECURITY.md has a test behind every sentence, and `docs/security.md` names the tests of every item. Those tests
 * exist, and no sentence and no item is without one.
 */
import { getTableName } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import { expect, test } from 'vitest';
import { DATA_KEY_COLUMNS, SEALED_COLUMNS } from '../../db/queries/sealed.ts';
import {
  consumers,
  organizations,
  providerEvents,
  recipients,
  settlements,
  verifications,
  webhooks,
} from '../../db/schema/index.ts';
import { hasTest, readSource, sourceFiles } from '../support/source.ts';
import { words } from '../support/words.ts';
import { codes, itemsOf, rowsOf, sentencesOf } from './page-text.ts';

const ROWS = readSource('docs/security.md')
  .split('\n')
  .filter((line) => /^\| (API|V)\d/.test(line));
const FILES = sourceFiles('.ts');

/** What a list claims, with the tests that show it, which are indented below it. */
const claimsIn = (list: string): string[][] =>
  readSource(`test/contract/${list}.txt`)
    .replaceAll(/^#.*\n/gm, '')
    .trim()
    .split(/\n(?! )/)
    .map((claim) => claim.split('\n  '));
const SECURITY_CLAIMS = claimsIn('security-claims');
const ITEM_CLAIMS = claimsIn('security-item-claims');

test('every chapter and every item is in the table', () => {
  const items = ROWS.map((row) => /^\| ((?:API|V)\d+)/.exec(row)?.[1]);
  const numbered = (prefix: string, count: number) => Array.from({ length: count }, (_, n) => `${prefix}${n + 1}`);
  expect(items).toEqual([...numbered('API', 10), ...numbered('V', 17)]);
});

test.each(ROWS)('docs/security.md names existing tests in: %s', (row) => {
  const named = [...row.matchAll(/`([\w/*-]+\.test\.ts)`/g)].map(([, name = '']) => name);
  for (const name of named) {
    const pattern = new RegExp(`(^|/)${name.replaceAll('.', '\\.').replaceAll('*', '[\\w-]*')}$`);
    expect(
      FILES.filter((file) => file.startsWith('test/') && pattern.test(file)),
      name,
    ).not.toEqual([]);
  }
  const isOut = row.includes('out of scope');
  expect(isOut || named.length > 0 || row.includes('`test/') || row.includes('`npm run')).toBe(true);
});

test('SECURITY.md has no sentence without its tests, and the list has no other', () => {
  const page = readSource('SECURITY.md');
  const [, ...held] = rowsOf(page).map((cells) => cells.at(-1) ?? '');
  const sentences = [...itemsOf(page).flatMap(sentencesOf), ...held];
  expect(sentences.length).toBeGreaterThan(40);
  expect(new Set(SECURITY_CLAIMS.map(([sentence]) => sentence))).toEqual(new Set(sentences));
});

test('docs/security.md has no part of an item without its tests, and the list has no other', () => {
  const parts = rowsOf(ROWS.join('\n')).flatMap(([item = '', held = '']) =>
    held.split('; ').map((part) => `${item.split(' ')[0]}: ${part}`),
  );
  expect(ITEM_CLAIMS.map(([part]) => part)).toEqual(parts);
});

test.each([...SECURITY_CLAIMS, ...ITEM_CLAIMS])('a test exists for: %s', (_sentence, ...shownBy) => {
  expect(shownBy).not.toEqual([]);
  expect(shownBy.filter((name) => !name.startsWith('not tested: ') && !hasTest(name))).toEqual([]);
});

test('what SECURITY.md says is sealed or not is so in the tables', () => {
  const nameOf = (column: AnyPgColumn) => `${getTableName(column.table)}.${column.name}`;
  const byDataKey = DATA_KEY_COLUMNS.map(nameOf);
  const byService = SEALED_COLUMNS.map(({ column }) => nameOf(column));
  expect(byDataKey).toEqual(
    words(`
    recipients.personal_data_sealed verifications.subject_sealed verifications.verified_name_sealed
    settlements.payee_sealed idempotency_keys.exchange_sealed
  `),
  );
  for (const column of [
    consumers.contactSealed,
    settlements.paymentTokenSealed,
    webhooks.secretSealed,
    providerEvents.bodySealed,
  ])
    expect(byService).toContain(nameOf(column));
  const [notSealed = ''] = itemsOf(readSource('SECURITY.md')).filter((item) => item.startsWith('**Not sealed'));
  const clear = [
    organizations.contactEmail,
    verifications.rejectionReason,
    settlements.reference,
    webhooks.description,
    settlements.metadata,
    recipients.metadata,
  ];
  expect(codes(notSealed)).toEqual([...new Set(clear.map(({ name }) => name))]);
});
