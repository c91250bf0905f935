/** What the databases hold after a rehearsal: PostgreSQL every settlement, Temporal every workflow. */
import { Client, Connection } from '@temporalio/client';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { queryOnce } from '../support/connection.ts';
import { askUntil } from '../support/wait.ts';
import type { Cluster } from './steps.ts';
import { NAMESPACE } from './temporal-server.ts';

export type Evidence = {
  /**
   * Compares what is stored with what was accepted, until nothing differs or the time is over.
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

const SETTLE_TIMEOUT_MS = 120_000;
const POLL_MS = 500;
/** Of a card settlement that has settled. */
const TRANSITIONS = 5;
const POSTINGS = 12;

export async function openEvidence({
  databaseUrl,
  temporalAddress,
}: Pick<Cluster, 'databaseUrl' | 'temporalAddress'>): Promise<Evidence> {
  const connection = await Connection.connect({ address: temporalAddress });
  const client = new Client({ connection, namespace: NAMESPACE });
  const differences = async (orgId: string, accepted: readonly string[]): Promise<string[]> => [
    ...(await settlementDifferences(databaseUrl, orgId, accepted)),
    ...(await workflowDifferences(client, orgId, accepted)),
  ];
  return {
    differences: (orgId, accepted) =>
      askUntil(
        () => differences(orgId, accepted),
        ({ length }) => length === 0,
        { timeoutMs: SETTLE_TIMEOUT_MS, everyMs: POLL_MS },
      ),
    startedAgain: async (orgId) =>
      [...(await listRuns(client, orgId)).values()].filter((statuses) => statuses.length > 1).length,
    close: () => connection.close(),
  };
}

const WRONG = `
  SELECT s.settlement_id, s.status,
    (SELECT count(*) FROM certificates c WHERE c.settlement_id = s.settlement_id)::int AS certificates,
    (SELECT count(*) FROM postings p WHERE p.settlement_id = s.settlement_id)::int AS postings,
    (SELECT count(*) FROM settlement_transitions t WHERE t.settlement_id = s.settlement_id)::int AS transitions,
    (SELECT count(*) FROM (SELECT 1 FROM postings p WHERE p.settlement_id = s.settlement_id GROUP BY currency HAVING sum(amount_minor) <> 0) u)::int AS unbalanced
  FROM settlements s WHERE s.org_id = $1`;

type Row = {
  settlement_id: string;
  status: string;
  certificates: number;
  postings: number;
  transitions: number;
  unbalanced: number;
};

async function settlementDifferences(
  databaseUrl: string,
  orgId: string,
  accepted: readonly string[],
): Promise<string[]> {
  // A connection does not survive a failover.
  const rows = await queryOnce<Row>(databaseUrl, WRONG, [orgId]);
  const wrong = rows.filter(
    ({ status, certificates, postings, transitions, unbalanced }) =>
      status !== 'settled' ||
      certificates !== 1 ||
      postings !== POSTINGS ||
      transitions !== TRANSITIONS ||
      unbalanced !== 0,
  );
  return [
    ...comparison('settlements', accepted, new Set(rows.map((row) => row.settlement_id))),
    ...wrong.map((row) => JSON.stringify(row)),
  ];
}

async function workflowDifferences(client: Client, orgId: string, accepted: readonly string[]): Promise<string[]> {
  const runs = await listRuns(client, orgId);
  const wrong = [...runs].filter(([, statuses]) => statuses.some((status) => status !== 'COMPLETED'));
  return [
    ...comparison('workflows', accepted.map(settlementWorkflowId), new Set(runs.keys())),
    ...wrong.map(([workflowId, statuses]) => `${workflowId} has the runs ${statuses.join(', ')}`),
  ];
}

/** @returns the status of each run, by the workflow's id */
async function listRuns(client: Client, orgId: string): Promise<Map<string, string[]>> {
  const runs = new Map<string, string[]>();
  for await (const { workflowId, status } of client.workflow.list({
    query: `WorkflowType = "settlement" AND OrgId = "${orgId}"`,
  })) {
    runs.set(workflowId, [...(runs.get(workflowId) ?? []), status.name]);
  }
  return runs;
}

function comparison(what: string, expected: readonly string[], found: ReadonlySet<string>): string[] {
  const wanted = new Set(expected);
  const lost = [...wanted].filter((id) => !found.has(id)).length;
  const extra = [...found].filter((id) => !wanted.has(id)).length;
  return [
    ...(wanted.size === expected.length
      ? []
      : [`${expected.length - wanted.size} ${what} belong to more than one request`]),
    ...(lost === 0 ? [] : [`${lost} ${what} are lost`]),
    ...(extra === 0 ? [] : [`${extra} ${what} exist that the partner knows nothing of`]),
  ];
}
