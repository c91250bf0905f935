/**
 * Schemas that extend another one. The document has the fields that they share once, which generated clients show as a
 * base class or an intersection. Validation at run time does not read this: it uses the whole schema.
 */
import { isDeepStrictEqual } from 'node:util';
import type { OpenAPIV3_1 } from 'openapi-types';
import { EVENT_TYPES } from '../../domain/event.ts';
import { eventBase, eventSchemaName } from '../schemas/event.ts';

type Schemas = Record<string, OpenAPIV3_1.SchemaObject>;

/** Each schema and the one that it extends. A base comes before what extends it. */
const BASES: readonly (readonly [extension: string, base: string])[] = [
  ['SettlementResponse', 'SettlementEventData'],
  ['SettlementExceptionEventData', 'SettlementEventData'],
  ['SettlementEventData', 'SettleResponseV2'],
  ['SettleResponseV2', 'SettlementFields'],
  ['TransferResponse', 'SettlementFields'],
  ['CaribbeanOfframpResponse', 'SettleResponseV2'],
  ['VerificationResponse', 'VerificationEventData'],
  ['VerificationEventData', 'VerificationFields'],
  ['ConsumerVerificationResponse', 'VerificationFields'],
  ['RecipientResponse', 'ConsumerRecipientResponse'],
  ['ApiKeyRotatedResponse', 'ApiKeyCreatedResponse'],
  ['ApiKeyCreatedResponse', 'ApiKeyResponse'],
  ['ApiKeyRevokedResponse', 'ApiKeyResponse'],
  ['EvidenceCertificate', 'CertificateFields'],
  ['CertificateEventData', 'CertificateFields'],
  ['OrganizationCreatedResponse', 'OrganizationResponse'],
  ['WebhookRotatedResponse', 'WebhookCreatedResponse'],
  ['WebhookCreatedResponse', 'WebhookResponse'],
  ['EstimateResponseV2', 'EstimateFigures'],
  ['OfframpEstimateResponse', 'EstimateFigures'],
  ['QuoteResponse', 'EstimateFigures'],
  ['AdvanceClockStep', 'StepMoment'],
  ['CancelStep', 'StepMoment'],
  ['DecideVerificationStep', 'StepMoment'],
  ['PostBankledgerEventStep', 'StepMoment'],
  ['ResolveReviewStep', 'StepMoment'],
  ['SendEventStep', 'StepMoment'],
  ['Problem', 'ProblemFields'],
  ['IdempotencyKeyReusedProblem', 'ProblemFields'],
  ['LaunchGatesClosedProblem', 'ProblemFields'],
  ['NotFoundProblem', 'ProblemFields'],
  ['QuotaExceededProblem', 'ProblemFields'],
  ['ScopeInsufficientProblem', 'ProblemFields'],
  ['StateConflictProblem', 'ProblemFields'],
  ['SettlementEvent', 'EventEnvelope'],
  ...EVENT_TYPES.map((type) => [eventSchemaName(type), eventBase(type)] as const),
];

/** @throws Error if a schema does not have every field of its base */
export function extendSchemas(schemas: Schemas): Schemas {
  const extended = BASES.map(([name, base]) => [name, extensionOf(schemas, name, base)] as const);
  return { ...schemas, ...Object.fromEntries(extended) };
}

function extensionOf(schemas: Schemas, name: string, base: string): OpenAPIV3_1.SchemaObject {
  const { type: _type, properties = {}, required = [], ...rest } = schemaOf(schemas, name);
  const { properties: inherited = {}, required: inheritedRequired = [] } = schemaOf(schemas, base);
  for (const [field, schema] of Object.entries(inherited))
    if (!isDeepStrictEqual(properties[field], schema) || required.includes(field) !== inheritedRequired.includes(field))
      throw new Error(`${name} cannot extend ${base}: ${field} differs`);
  const own = Object.entries(properties).filter(([field]) => !(field in inherited));
  return {
    ...rest,
    allOf: [
      { $ref: `#/components/schemas/${base}` },
      {
        type: 'object',
        properties: Object.fromEntries(own),
        required: required.filter((field) => !(field in inherited)),
      },
    ],
  };
}

function schemaOf(schemas: Schemas, name: string): OpenAPIV3_1.SchemaObject {
  const schema = schemas[name];
  if (schema === undefined) throw new Error(`the document has no schema ${name}`);
  return schema;
}
