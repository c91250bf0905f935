/** What is photographed: pages of the service and of Temporal UI. */
import type { Page } from 'playwright-core';
import { z } from 'zod';
import { settlementWorkflowId } from '../../workflows/contract.ts';
import type { Subjects } from './subject.ts';

export type View = {
  readonly name: string;
  readonly url: string;
  readonly headers?: Record<string, string>;
  /** What is kept in the browser when the page is opened. */
  readonly localStorage?: Record<string, string>;
  /** Waits until everything is drawn. */
  ready(page: Page): Promise<unknown>;
  /** One too long to be looked at whole is shown by its first screen. */
  readonly isLong?: boolean;
};

const NAMESPACE = 'default';
const COLUMNS = ['Status', 'Workflow ID', 'Type', 'SettlementStatus', 'WaitingFor', 'Corridor', 'PaymentMethod', 'Start'];

const drawn = (page: Page): Promise<unknown> => page.locator('h1').first().waitFor();

export const serviceViews = (url: string, { apiKey, certificateId }: Subjects): View[] => [
  { name: 'home', url: `${url}/`, ready: drawn },
  { name: 'status', url: `${url}/status`, ready: drawn },
  { name: 'problem', url: `${url}/problems/idempotency_key_reused`, ready: drawn },
  // The reference draws itself, after everything has come.
  { name: 'docs', url: `${url}/docs`, ready: drawn, isLong: true },
  { name: 'certificate', url: `${url}/v1/caribbean/certificate/${certificateId}`, headers: { 'x-api-key': apiKey }, ready: drawn },
];

export async function temporalViews(url: string, { settled, waiting }: Subjects): Promise<View[]> {
  const list = (name: string, query: string): View => ({
    name,
    url: `${url}/namespaces/${NAMESPACE}/workflows?query=${encodeURIComponent(query)}`,
    localStorage: { 'namespace-workflow-table-columns': JSON.stringify({ [NAMESPACE]: COLUMNS.map((label) => ({ label, pinned: false })) }) },
    ready: (page) => page.getByText('settlement:').first().waitFor(),
  });
  const run = async (name: string, settlementId: string): Promise<View> => {
    const workflow = `namespaces/${NAMESPACE}/workflows/${encodeURIComponent(settlementWorkflowId(settlementId))}`;
    return {
      name,
      url: `${url}/${workflow}/${await readRunId(`${url}/api/v1/${workflow}`)}/history`,
      ready: (page) =>
        page
          .getByText(/settlement by/)
          .first()
          .waitFor(),
    };
  };
  return [
    list('temporal-settlements', 'WorkflowType="settlement"'),
    list('temporal-waiting-for-card', 'ExecutionStatus="Running" AND WaitingFor="card evidence"'),
    await run('temporal-waiting', waiting),
    await run('temporal-settled', settled),
  ];
}

const Described = z.object({ workflowExecutionInfo: z.object({ execution: z.object({ runId: z.string() }) }) });

async function readRunId(url: string): Promise<string> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}.`);
  return Described.parse(await answer.json()).workflowExecutionInfo.execution.runId;
}
