/** What is left of a rehearsal: in PostgreSQL every settlement, in Temporal every workflow. */
import { Client, Connection } from '@temporalio/client';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { queryOnce } from '../support/connection.ts';
import { askUntil } from '../support/wait.ts';
import { checkAtRest } from '../torture/check.ts';
import type { Cluster } from './steps.ts';
import { NAMESPACE } from './temporal-server.ts';

export type Evidence = {
  /**
   * Compares what is stored with what was accepted, until nothing differs or the time is over, and with the rules of
   * docs/torture.md.
   *
   * @returns one line for each difference
   */
  differences(orgId: string, accepted: readonly string[]): Promise<string[]>;
  /**
   * Counts the workflows that were started again after they had completed. A dispatcher that dies between its call and
   * its delete leaves its row to the next one, and such a run changes nothing (`test/ops/settlement-workflow.test.ts`).
   */
  startedAgain(orgId: string): Promise<number>;
  close(): Promise<void>;
};

const SETTLED = { timeoutMs: 120_000, everyMs: 500 };

export async function openEvidence({
  databaseUrl,
  temporalAddress,
}: Pick<Cluster, 'databaseUrl' | 'temporalAddress'>): Promise<Evidence> {
  const connection = await Connection.connect({ address: temporalAddress });
  const client = new Client({ connection, namespace: NAMESPACE });
  const differ = async (orgId: string, accepted: readonly string[]): Promise<string[]> => [
    ...(await settlementDifferences(databaseUrl, orgId, accepted)),
    ...runDifferences(await listRuns(client, orgId), accepted),
  ];
  return {
    differences: async (orgId, accepted) => {
      const found = await askUntil(
        () => differ(orgId, accepted),
        ({ length }) => length === 0,
        SETTLED,
      );
      const violations = await checkAtRest(databaseUrl, client, []);
      return [...found, ...violations.map(({ rule, detail }) => `${rule}: ${detail}`)];
    },
    startedAgain: async (orgId) =>
      [...(await listRuns(client, orgId)).values()].filter((statuses) => statuses.length > 1).length,
    close: () => connection.close(),
  };
}

async function settlementDifferences(databaseUrl: string, orgId: string, accepted: readonly string[]) {
  const statement = 'SELECT settlement_id AS id, status FROM settlements WHERE org_id = $1';
  // A connection does not survive a failover.
  const rows = await queryOnce<{ id: string; status: string }>(databaseUrl, statement, [orgId]);
  const [wanted, found] = [new Set(accepted), new Set(rows.map(({ id }) => id))];
  const count = (number: number, what: string): string[] => (number === 0 ? [] : [`${number} settlements ${what}`]);
  return [
    ...count(accepted.length - wanted.size, 'belong to more than one request'),
    ...count([...wanted].filter((id) => !found.has(id)).length, 'are lost'),
    ...count([...found].filter((id) => !wanted.has(id)).length, 'exist that the partner knows nothing of'),
    ...rows.filter(({ status }) => status !== 'settled').map(({ id, status }) => `${id} is ${status}`),
  ];
}

/** Each accepted settlement has a run, and all runs have completed. @param runs the status of each, by workflow */
export function runDifferences(runs: ReadonlyMap<string, readonly string[]>, accepted: readonly string[]): string[] {
  const missing = accepted.map(settlementWorkflowId).filter((workflowId) => !runs.has(workflowId));
  const unfinished = [...runs].filter(([, statuses]) => statuses.some((status) => status !== 'COMPLETED'));
  return [
    ...missing.map((workflowId) => `${workflowId} has no run`),
    ...unfinished.map(([workflowId, statuses]) => `${workflowId} has the runs ${statuses.join(', ')}`),
  ];
}

/** @returns the status of each run, by the workflow's id */
async function listRuns(client: Client, orgId: string): Promise<Map<string, string[]>> {
  const runs = new Map<string, string[]>();
  const query = `WorkflowType = "settlement" AND OrgId = "${orgId}"`;
  for await (const { workflowId, status } of client.workflow.list({ query }))
    runs.set(workflowId, [...(runs.get(workflowId) ?? []), status.name]);
  return runs;
}
