/** The cheap part of the drills: docs/operations.md, the situations and docs/drills.md name the same. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { repositoryRoot } from '../../process/local/place.ts';
import { DRILLS } from './drill.ts';
import { TROUBLE_NAMES } from './operator.ts';
import { hasCommand, readRunbook, typed } from './runbook.ts';
import { SYMPTOMS } from './situation.ts';

const runbook = readRunbook();
const page = readFileSync(path.join(repositoryRoot, 'docs/drills.md'), 'utf8');

test('every line of "What to look at first" is a situation, at least ten, and docs/drills.md has its cause', () => {
  const symptoms = runbook.firstLooks.map((look) => look.symptom);
  expect(symptoms).toEqual(SYMPTOMS);
  expect(symptoms.length).toBeGreaterThanOrEqual(10);
  for (const line of symptoms) expect(page).toContain(`| ${line} | \`ops `);
});

test('every line of "Causes and remedies" is played, needs at most two commands, and has passed', () => {
  const { remedies } = runbook;
  expect(remedies.map(({ wrong }) => wrong)).toEqual(TROUBLE_NAMES);
  for (const { wrong, cause, remedy } of remedies) {
    expect(Math.max(cause.commands.length, remedy.commands.length), wrong).toBeLessThanOrEqual(2);
    expect(page).toContain(`| ${wrong} | ${cause.words} | \``);
  }
});

test('docs/drills.md has every drill, and each has passed', () => {
  for (const { name, title } of DRILLS) {
    expect(page).toContain(`### ${title}\n`);
    expect(page).toContain(`\`npm run drill -- ${name}\`: passed in `);
  }
  expect(page).not.toContain('FAILED');
});

test('a sentence that docs/drills.md quotes from the runbook is still in it', () => {
  const quoted = [...page.matchAll(/^\d+\. The runbook, (`(\w+)`|.+?), says: (.+)\.$/gm)];
  expect(quoted.length).toBeGreaterThan(5);
  const all = readFileSync(path.join(repositoryRoot, 'docs/operations.md'), 'utf8');
  for (const [, , alert, words = ''] of quoted)
    expect(alert === undefined || !/^[A-Z]/.test(alert) ? all : runbook.alert(alert)).toContain(words);
});

test('a command is found as it stands in a text, and typed with a value for each placeholder', () => {
  expect(hasCommand('see `ops stuck`', 'stuck')).toBe(true);
  expect(hasCommand('see `ops waiting`', 'stuck')).toBe(false);
  expect(
    typed('resolve <settlement id> paid|refused --note <why it is>', {
      'settlement id': 'stl_1',
      'paid|refused': 'paid',
      'why it is': 'two words',
    }),
  ).toEqual(['resolve', 'stl_1', 'paid', '--note', 'two words']);
  expect(() => typed('show <id>', {})).toThrow('needs a value for <id>');
});
