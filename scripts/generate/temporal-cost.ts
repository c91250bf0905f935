/** What a run costs Temporal, counted in the recorded histories: the table of docs/scaling.md. */
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { repositoryRoot } from '../../process/local/place.ts';
import { table } from './document.ts';

const HISTORIES = path.join(repositoryRoot, 'test/workflows/histories');

/** What Temporal Cloud bills as one action. A marker is that of the local activities of one workflow task. */
const ACTIONS = [
  'WORKFLOW_EXECUTION_STARTED',
  'WORKFLOW_EXECUTION_SIGNALED',
  'UPSERT_WORKFLOW_SEARCH_ATTRIBUTES',
  'TIMER_STARTED',
  'ACTIVITY_TASK_STARTED',
  'MARKER_RECORDED',
];
/** What writes a row of the visibility store. */
const VISIBILITY = [
  'WORKFLOW_EXECUTION_STARTED',
  'UPSERT_WORKFLOW_SEARCH_ATTRIBUTES',
  'WORKFLOW_EXECUTION_COMPLETED',
  'WORKFLOW_EXECUTION_CONTINUED_AS_NEW',
];
const TASK = 'WORKFLOW_TASK_COMPLETED';

const History = z.object({
  events: z.array(
    z.object({
      eventType: z.string().transform((type) => type.replace('EVENT_TYPE_', '')),
      workflowTaskStartedEventAttributes: z.object({ historySizeBytes: z.coerce.number() }).optional(),
    }),
  ),
});

export async function temporalCostTable(): Promise<string> {
  const files = (await readdir(HISTORIES)).filter((file) => !file.startsWith('sandbox')).sort();
  const rows = files.map(async (file) => {
    const { events } = History.parse(JSON.parse(await readFile(path.join(HISTORIES, file), 'utf8')));
    const count = (types: readonly string[]) => events.filter(({ eventType }) => types.includes(eventType)).length;
    const bytes = events.findLast((event) => event.workflowTaskStartedEventAttributes);
    const [workflow = '', run = ''] = file.replace('.json', '').split('.');
    return [
      `\`${workflow}\`: ${run.replaceAll('-', ' ')}`,
      ...[count(ACTIONS), count([TASK]), count(VISIBILITY), events.length].map(String),
      String(bytes?.workflowTaskStartedEventAttributes?.historySizeBytes ?? '–'),
    ];
  });
  const head = ['run', 'actions', 'workflow tasks', 'visibility writes', 'events', 'bytes before its last task'];
  return table(head, await Promise.all(rows));
}
