/**
 * What a request is about, for its line in the log: the same ids as in the lines of the dispatcher and of the
 * activities. An id from a caller is logged only if the service can have made it.
 */
import type { FastifyRequest } from 'fastify';
import { isId, isSettlementId } from '../../db/id.ts';
import { settlementWorkflowId, verificationWorkflowId } from '../../domain/workflow-id.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The settlement or verification that the handler accepted or changed, where the path does not name it. */
    subjectId?: string;
  }
}

export function subjectFields({ params, subjectId }: Pick<FastifyRequest, 'params' | 'subjectId'>): object {
  const settlementId = subjectId ?? paramOf(params, 'settlement_id');
  if (settlementId !== undefined && isSettlementId(settlementId))
    return { settlement_id: settlementId, workflow_id: settlementWorkflowId(settlementId) };
  const verificationId = subjectId ?? paramOf(params, 'verification_id');
  if (verificationId !== undefined && isId(verificationId))
    return { verification_id: verificationId, workflow_id: verificationWorkflowId(verificationId) };
  return {};
}

function paramOf(params: unknown, name: string): string | undefined {
  if (typeof params !== 'object' || params === null) return undefined;
  const value: unknown = Object.entries(params).find(([key]) => key === name)?.[1];
  return typeof value === 'string' ? value : undefined;
}
