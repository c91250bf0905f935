/** The text of docs/drills.md. */
import { OPERATOR_NAME } from './drill.ts';
import type { Played } from './operator.ts';
import type { Finding } from './situation.ts';

export type DrillResult = {
  readonly name: string;
  readonly title: string;
  readonly seconds: number;
  readonly steps: readonly string[];
  /** Why it failed; undefined when it did not. */
  readonly failure: string | undefined;
};

export const pageOf = (
  drills: readonly DrillResult[],
  findings: readonly Finding[],
  played: readonly Played[],
): string =>
  `${[
    INTRODUCTION,
    SITUATIONS,
    situationTable(findings).join('\n'),
    operatorText(played),
    DRILLS_HEADING,
    ...drills.map(drillText),
  ].join('\n\n')}\n`;

/** The page with this part in place of its own. */
export function withOperator(page: string, played: readonly Played[]): string {
  const [before = '', after = ''] = page.split(DRILLS_HEADING);
  const [kept = ''] = before.split(OPERATOR_HEADING);
  return `${kept}${operatorText(played)}\n\n${DRILLS_HEADING}${after}`;
}

const DRILLS_HEADING = '## Drills';
const OPERATOR_HEADING = '## Causes and remedies';

const operatorText = (played: readonly Played[]): string =>
  [
    OPERATOR_HEADING,
    `\`npm run drill -- ${OPERATOR_NAME}\` plays each line of that table of the page: at most two commands show the cause, and at ` +
      'most two are the\nremedy. What was shown is quoted.',
    operatorTable(played).join('\n'),
  ].join('\n\n');

/** Markdown, which is also what the command prints. */
export const operatorTable = (played: readonly Played[]): string[] => [
  '| what is wrong | the cause, by | shown | the remedy | shown |',
  '|---|---|---|---|---|',
  ...played.map(
    ({ wrong, cause, causeShown, remedy, remedyShown }) =>
      `| ${wrong} | ${cause} | \`${inCell(causeShown)}\` | ${remedy} | \`${inCell(remedyShown)}\` |`,
  ),
];

const INTRODUCTION = `# Drills

<!-- Written by \`npm run drill -- --report\`. Do not edit it: change test/drill, or run the drills again. -->

\`npm run drill\` starts the service as separate processes, with a Prometheus that has the rules of \`docs/alerts.yaml\`,
and breaks it on purpose. Each drill fails unless the alert or the metric, [docs/operations.md](operations.md) and the
output of \`npm run ops\` lead to the remedy, in the words that are quoted here. A drill types only commands that the page
has. The rules fire after 5 s instead of minutes; their own times are tested by promtool.

\`\`\`
npm run drill                   # all of them, some minutes
npm run drill -- worker         # one
npm run drill -- situations     # what an operator finds by at most two commands
npm run drill -- operator       # what goes wrong, its cause and its remedy, by at most two commands each
npm run drill -- --report       # all of them, and writes this page
\`\`\``;

const SITUATIONS = `## Situations

Each line of "What to look at first" is seeded. The first command is the one of the line. The second one, if there is one,
is what the output of the first one names.`;

/** Markdown, which is also what the command prints. */
export const situationTable = (findings: readonly Finding[]): string[] => [
  '| somebody says | commands | the cause, as the last one shows it |',
  '|---|---|---|',
  ...findings.map(
    ({ symptom, commands, cause }) =>
      `| ${symptom} | ${commands.map((each) => `\`${each}\``).join(', ')} | \`${inCell(cause)}\` |`,
  ),
];

const inCell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('`', "'");

const drillText = ({ name, title, seconds, steps, failure }: DrillResult): string =>
  [
    `### ${title}`,
    `\`npm run drill -- ${name}\`: ${failure === undefined ? 'passed' : 'FAILED'} in ${seconds} s.`,
    [...steps, ...(failure === undefined ? [] : [failure])].map((step, index) => `${index + 1}. ${step}`).join('\n'),
  ].join('\n\n');
