/**
 * "Current Details" of a run in Temporal UI, as Markdown: its status, until when it waits, and what an operator does
 * next, in the words of `npm run ops -- show`. Details are no part of a history, so they may change between versions.
 */
import { setCurrentDetails, workflowInfo } from '@temporalio/workflow';
import { type Advice, runbookMarkdown } from '../domain/operator-advice.ts';

/** @param facts one line each */
export function publishDetails(facts: readonly string[], { say, command, section }: Advice): void {
  setCurrentDetails(
    [
      ...facts,
      // A placeholder such as `<id>` must not be read as an HTML tag.
      `**Next**: ${say.replaceAll('<', '\\<')}`,
      ...(command === '' ? [] : [`\`${command}\``]),
      ...(section === null ? [] : [runbookMarkdown(section, runbookUrl())]),
    ].join('\n\n'),
  );
}

/** What the dispatcher was configured with when it started this run. */
function runbookUrl(): string | undefined {
  const url = workflowInfo().memo?.['runbook'];
  return typeof url === 'string' ? url : undefined;
}
