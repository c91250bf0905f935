/** The pages that screenshots are taken of: the service's and Temporal UI's. */
import type { Page } from 'playwright-core';
import { z } from 'zod';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import type { Subjects } from './subject.ts';

export type View = {
  readonly name: string;
  readonly url: string;
  readonly headers?: Record<string, string>;
  /** Set in the browser before the page is opened. */
  readonly localStorage?: Record<string, string>;
  /** Waits until the page is drawn. */
  ready(page: Page): Promise<unknown>;
  /** Of a very long page, only the first screen is taken. */
  readonly isLong?: boolean;
  /** The height of the screen, for a page that scrolls only in one of its parts. */
  readonly height?: number;
};

const NAMESPACE = 'default';
const HISTORY_HEIGHT = 1_600;
/** The id comes last, because it is as wide as all the others together. */
const COLUMNS = ['Status', 'SettlementStatus', 'WaitingFor', 'Corridor', 'PaymentMethod', 'Start', 'Workflow ID'];

const drawn = (page: Page): Promise<unknown> => page.locator('h1').first().waitFor();

export const serviceViews = (url: string, { apiKey, certificateId }: Subjects): View[] => [
  { name: 'home', url: `${url}/`, ready: drawn },
  { name: 'status', url: `${url}/status`, ready: drawn },
  { name: 'problem', url: `${url}/problems/idempotency_key_reused`, ready: drawn },
  // A script draws the reference after the page has loaded.
  { name: 'docs', url: `${url}/docs`, ready: drawn, isLong: true },
  {
    name: 'certificate',
    url: `${url}/v1/caribbean/certificate/${certificateId}`,
    headers: { 'x-api-key': apiKey },
    ready: drawn,
  },
];

export async function temporalViews(url: string, { settled, waiting }: Subjects): Promise<View[]> {
  const list = (name: string, query: string): View => ({
    name,
    url: `${url}/namespaces/${NAMESPACE}/workflows?query=${encodeURIComponent(query)}`,
    localStorage: {
      'namespace-workflow-table-columns': JSON.stringify({
        [NAMESPACE]: COLUMNS.map((label) => ({ label, pinned: false })),
      }),
    },
    ready: (page) => page.getByText('settlement:').first().waitFor(),
  });
  const run = async (name: string, settlementId: string): Promise<View[]> => {
    const workflow = `namespaces/${NAMESPACE}/workflows/${encodeURIComponent(settlementWorkflowId(settlementId))}`;
    const runUrl = `${url}/${workflow}/${await readRunId(`${url}/api/v1/${workflow}`)}`;
    return [
      {
        name: `${name}-history`,
        url: `${runUrl}/history`,
        height: HISTORY_HEIGHT,
        ready: (page) => page.getByText('Event History').first().waitFor(),
      },
      {
        name: `${name}-details`,
        url: `${runUrl}/user-metadata`,
        ready: (page) => page.getByText('Current Details').first().waitFor(),
      },
    ];
  };
  return [
    list('temporal-settlements', 'WorkflowType="settlement"'),
    list('temporal-waiting-for-card', 'ExecutionStatus="Running" AND WaitingFor="card evidence"'),
    ...(await run('temporal-waiting', waiting)),
    ...(await run('temporal-settled', settled)),
  ];
}

const Described = z.object({ workflowExecutionInfo: z.object({ execution: z.object({ runId: z.string() }) }) });

async function readRunId(url: string): Promise<string> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}.`);
  return Described.parse(await answer.json()).workflowExecutionInfo.execution.runId;
}
