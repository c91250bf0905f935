/** What the situations and the troubles have shown, as tables of Markdown: docs/drills.md has the same. */
import type { Played } from './operator.ts';
import type { Finding } from './situation.ts';

export const operatorTable = (played: readonly Played[]): string[] => [
  '| what is wrong | the cause, by | shown | the remedy | shown |',
  '|---|---|---|---|---|',
  ...played.map(
    ({ wrong, cause, causeShown, remedy, remedyShown }) =>
      `| ${wrong} | ${cause} | \`${inCell(causeShown)}\` | ${remedy} | \`${inCell(remedyShown)}\` |`,
  ),
];

export const situationTable = (findings: readonly Finding[]): string[] => [
  '| somebody says | commands | the cause, as the last one shows it |',
  '|---|---|---|',
  ...findings.map(
    ({ symptom, commands, cause }) =>
      `| ${symptom} | ${commands.map((each) => `\`${each}\``).join(', ')} | \`${inCell(cause)}\` |`,
  ),
];

const inCell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('`', "'");
