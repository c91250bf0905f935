/** Whether Temporal does what the service needs of it, and if not, why. */
import { type Client, isGrpcServiceError, NamespaceNotFoundError, ServiceError } from '@temporalio/client';
import { type TemporalFault, type TemporalHealth, temporalFault } from '../domain/temporal-health.ts';
import { SEARCH_ATTRIBUTES } from '../workflows/contract.ts';

/** INDEXED_VALUE_TYPE_KEYWORD of Temporal's API. */
const KEYWORD = 2;
const CALL_TIMEOUT_MS = 2_000;
/** No workflow has this id: to signal it changes nothing, and needs the right to write. */
const NO_WORKFLOW = 'no-workflow';

/** Codes of gRPC. */
const GRPC = {
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  permissionDenied: 7,
  unimplemented: 12,
  unavailable: 14,
  unauthenticated: 16,
} as const;

export type TemporalNamespace = { readonly connection: Client['connection']; readonly namespace: string };

/** What an error of a call to Temporal says about Temporal; undefined if it says something about the call. */
export function temporalFaultOf(error: unknown): TemporalFault | undefined {
  const cause = error instanceof ServiceError ? error.cause : error;
  if (cause instanceof NamespaceNotFoundError) return temporalFault('namespace_missing', cause.namespace);
  // Of the worker's connection. Its class is in a package that only the worker loads.
  if (cause instanceof Error && cause.name === 'TransportError') return unreachable(cause.message);
  if (!isGrpcServiceError(cause)) return undefined;
  const { code, details } = cause;
  switch (code) {
    case GRPC.deadlineExceeded:
    case GRPC.unavailable:
      return unreachable(details);
    case GRPC.unauthenticated:
      return temporalFault('credentials_refused', details);
    case GRPC.permissionDenied:
      return temporalFault('right_missing', details);
    case GRPC.notFound:
      return /^namespace/i.test(details) ? temporalFault('namespace_missing', namespaceIn(details)) : undefined;
    case GRPC.invalidArgument:
      return /search attribute/i.test(details) ? temporalFault('search_attributes_missing', details) : undefined;
    default:
      return undefined;
  }
}

const unreachable = (details: string): TemporalFault =>
  temporalFault(/cert|privatekey|altname|ssl|tls/i.test(details) ? 'tls_failed' : 'not_answering', details);

const namespaceIn = (details: string): string => /^Namespace (\S+) is not found/.exec(details)?.[1] ?? details;

/**
 * Asks for the namespace, its search attributes, and the right to write.
 *
 * @param at its connection must not retry: a retried call ends with its deadline, which tells nothing
 */
export async function checkTemporal(at: TemporalNamespace): Promise<TemporalHealth> {
  const { connection, namespace } = at;
  try {
    return await connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, async () => {
      await connection.workflowService.describeNamespace({ namespace });
      const [attributes] = await Promise.all([readSearchAttributes(at), requireWriting(at)]);
      return attributes.fault ?? { status: 'up', cause: null };
    });
  } catch (error) {
    return temporalFaultOf(error) ?? temporalFault('not_answering', error instanceof Error ? error.message : 'unknown');
  }
}

async function requireWriting({ connection, namespace }: TemporalNamespace): Promise<void> {
  const workflowExecution = { workflowId: NO_WORKFLOW };
  try {
    await connection.workflowService.signalWorkflowExecution({ namespace, workflowExecution, signalName: 'none' });
  } catch (error) {
    if (!isGrpcServiceError(error) || error.code !== GRPC.notFound) throw error;
  }
}

/** A credential that may not list the attributes, as in Temporal Cloud, may use them. */
const UNLISTED: readonly number[] = [GRPC.permissionDenied, GRPC.unimplemented];

async function readSearchAttributes({ connection, namespace }: TemporalNamespace) {
  const names = Object.keys(SEARCH_ATTRIBUTES);
  try {
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
    const missing = names.filter((name) => customAttributes?.[name] === undefined);
    const wrong = names.filter((name) => !missing.includes(name) && customAttributes?.[name] !== KEYWORD);
    if (wrong.length > 0) return { missing, fault: temporalFault('search_attributes_of_other_type', wrong.join(', ')) };
    if (missing.length > 0) return { missing, fault: temporalFault('search_attributes_missing', missing.join(', ')) };
  } catch (error) {
    if (!isGrpcServiceError(error) || !UNLISTED.includes(error.code)) throw error;
  }
  return { missing: [] };
}

/**
 * Registers the missing search attributes. Temporal reports success when a name is registered again with another type,
 * and changes nothing; `checkTemporal` finds that.
 */
export async function addSearchAttributes(at: TemporalNamespace): Promise<void> {
  const { connection, namespace } = at;
  await connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, async () => {
    const { missing } = await readSearchAttributes(at);
    const searchAttributes = Object.fromEntries(missing.map((name) => [name, KEYWORD]));
    if (missing.length > 0) await connection.operatorService.addSearchAttributes({ namespace, searchAttributes });
  });
}
