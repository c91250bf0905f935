import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Operation } from '../../api/plugins/operation-list.ts';
import { HTTPValidationError, MAY_GROW } from '../../api/schemas/common.ts';
import { ERROR_CODES } from '../../domain/error.ts';
import { EVENT_TYPES } from '../../domain/event.ts';
import { describeApi, GIVEN } from '../../scripts/generate/openapi.ts';
import { words } from '../support/words.ts';

const Content = z.record(z.string(), z.object({ schema: z.looseObject({ $ref: z.string().optional() }).optional() }));
const Link = z.strictObject({ operationId: z.string(), parameters: z.record(z.string(), z.string()) });
const Answer = z.looseObject({
  description: z.string(),
  links: z.record(z.string(), Link).default({}),
  content: Content.optional(),
  headers: z.record(z.string(), z.unknown()).optional(),
});
const Parameter = z.looseObject({
  in: z.enum(['path', 'query', 'header']),
  name: z.string(),
  required: z.boolean().optional(),
  description: z.string().optional(),
  schema: z.looseObject({}),
});
const Security = z.array(z.record(z.string(), z.array(z.string())));
const Described = z.looseObject({
  operationId: z.string().optional(),
  summary: z.string().optional(),
  description: z.string().optional(),
  deprecated: z.boolean().optional(),
  tags: z.array(z.string()).default([]),
  parameters: z.array(Parameter).default([]),
  requestBody: z.object({ content: Content, required: z.boolean().optional() }).optional(),
  responses: z.record(z.string(), Answer),
  security: Security.optional(),
});
const Document = z.looseObject({
  openapi: z.string(),
  info: z.looseObject({ version: z.string(), description: z.string() }),
  security: Security,
  tags: z.array(z.looseObject({ name: z.string(), description: z.string() })),
  servers: z.array(z.looseObject({ url: z.url(), description: z.string() })),
  webhooks: z.record(z.string(), z.looseObject({ post: Described })),
  paths: z.record(z.string(), z.record(z.string(), Described)),
  components: z.looseObject({ schemas: z.record(z.string(), z.looseObject({})) }),
});
/** Enumerations of answers that say nothing about growth. */
const CLOSED = words(`
  ApiKeyScope BankAccountType CapabilityAudience CapabilityEnvironment DocumentType EntityType Environment
  ImplementationState PaymentMethod PaymentTiming PostgresStatus Purpose ReadinessStatus RecipientKind
  ReviewOutcome SandboxEventName TemporalStatus VerificationDecision VerificationType WalletNetwork WebhookStatus
`);
type Named = {
  readonly name: string;
  readonly described: z.infer<typeof Described>;
  readonly operation: Operation | undefined;
};

/** The names of requests and answers, which generated clients use. A consumer's and a partner's recipient differ. */
const SCHEMA_NAMES: Record<string, readonly [request: string | null, answer: string | null]> = {
  'POST /v2/settle': ['SettleRequestV2', 'SettleResponseV2'],
  'POST /v2/estimate': ['EstimateRequestV2', 'EstimateResponseV2'],
  'POST /v2/banklink/link-token': ['LinkTokenRequest', 'LinkTokenResponse'],
  'POST /v2/banklink/exchange': ['ExchangeRequest', 'ExchangeResponse'],
  'POST /consumer/auth/request-otp': ['RequestOTPBody', null],
  'POST /consumer/auth/verify-otp': ['VerifyOTPBody', 'SessionResponse'],
  'GET /consumer/me': [null, 'MeResponse'],
  'POST /consumer/recipients': ['RecipientBody', null],
  'POST /consumer/quote': ['QuoteBody', 'QuoteResponse'],
  'POST /consumer/transfers': ['TransferBody', 'TransferResponse'],
  'GET /consumer/transfers/{transfer_id}': [null, 'TransferResponse'],
  'POST /v1/orgs': ['CreateOrganizationRequest', null],
  'POST /v1/orgs/{org_id}/keys': ['CreateApiKeyRequest', null],
  'POST /v1/recipients': ['CreateRecipientRequest', 'RecipientResponse'],
  'GET /v1/recipients/{recipient_id}': [null, 'RecipientResponse'],
  'PUT /v1/recipients/{recipient_id}': ['UpdateRecipientRequest', 'RecipientResponse'],
  'DELETE /v1/recipients/{recipient_id}': [null, 'RecipientResponse'],
  'POST /v1/kyc/verify': ['StartVerificationRequest', null],
  'POST /v1/kyc/{verification_id}/complete': ['CompleteVerificationRequest', null],
  'POST /v1/kyc/idverify/applicant': ['CreateIdverifyApplicantRequest', null],
  'POST /v1/wallets': ['CreateWalletRequest', 'WalletResponse'],
  'GET /v1/wallets/{wallet_id}': [null, 'WalletResponse'],
  'POST /v1/fees/estimate': ['FeeEstimateRequest', 'FeeEstimateResponse'],
  'POST /v1/caribbean/estimate': ['OfframpEstimateRequest', 'OfframpEstimateResponse'],
  'POST /v1/caribbean/settle': ['CaribbeanOfframpRequest', 'CaribbeanOfframpResponse'],
  'GET /v1/caribbean/settlements/{settlement_id}': [null, 'SettlementResponse'],
};

const KEY = { type: 'string', minLength: 16, maxLength: 128 };
const LISTS = ['/v1/recipients', '/v1/wallets', '/v1/caribbean/settlements'].map((path) => `GET ${path}`);
const ID = { type: 'string', minLength: 1, maxLength: 36 };
const SETTLEMENT_ID = { type: 'string', minLength: 1, maxLength: 64 };
const CERTIFICATE_ID = { type: 'string', minLength: 37, maxLength: 37, pattern: '^CERT-[0-9A-F]{32}$' };

/** "Limits" and "Endpoints" of the specification: where a parameter is, whether it is required, and its form. */
const LIMITS: readonly (readonly [place: string, required: boolean, schema: object, operations: readonly string[]])[] =
  [
    ['header Idempotency-Key', true, { ...KEY, pattern: '^[A-Za-z0-9._:-]+$' }, ['POST /v2/settle']],
    [
      'header Idempotency-Key',
      true,
      { ...KEY, pattern: '^[A-Za-z0-9][A-Za-z0-9._:-]+$' },
      ['POST /consumer/transfers'],
    ],
    [
      'header Idempotency-Key',
      false,
      { ...KEY, pattern: '^[A-Za-z0-9][A-Za-z0-9._:-]+$' },
      ['POST /v1/caribbean/settle'],
    ],
    ['query limit', false, { type: 'integer', minimum: 1, maximum: 100, default: 50 }, LISTS],
    ['query offset', false, { type: 'integer', minimum: 0, maximum: 1_000_000, default: 0 }, LISTS],
    [
      'path settlement_id',
      true,
      SETTLEMENT_ID,
      ['GET /v2/settle/{settlement_id}', 'GET /v1/caribbean/settlements/{settlement_id}'],
    ],
    ['query settlement_id', true, SETTLEMENT_ID, ['GET /v1/caribbean/certificate/{cert_id}/verify']],
    ['path org_id', true, ID, ['GET /v1/orgs/{org_id}', 'POST /v1/orgs/{org_id}/keys', 'GET /v1/orgs/{org_id}/keys']],
    ['path key_id', true, ID, ['POST /v1/orgs/keys/{key_id}/rotate', 'DELETE /v1/orgs/keys/{key_id}']],
    [
      'path recipient_id',
      true,
      ID,
      [
        ...['GET', 'PUT', 'DELETE'].map((method) => `${method} /v1/recipients/{recipient_id}`),
        'GET /v1/kyc/status/{recipient_id}',
      ],
    ],
    ['path wallet_id', true, ID, ['GET /v1/wallets/{wallet_id}']],
    ['path verification_id', true, ID, ['POST /v1/kyc/{verification_id}/complete']],
    ['path transfer_id', true, ID, ['GET /consumer/transfers/{transfer_id}']],
    [
      'path cert_id',
      true,
      CERTIFICATE_ID,
      ['GET /v1/caribbean/certificate/{cert_id}', 'GET /v1/caribbean/certificate/{cert_id}/verify'],
    ],
  ];

const described = await describeApi();
const raw = z
  .looseObject({ paths: z.unknown(), webhooks: z.unknown(), components: z.unknown() })
  .parse(described.document);
const document = Document.parse({
  ...raw,
  paths: withReferencesRead(raw.paths),
  webhooks: withReferencesRead(raw.webhooks),
});
const operations = described.operations.filter(({ schema }) => schema.hide !== true);
/** OpenAPI describes it by the content of the answers. */
const DESCRIBED_ELSEWHERE = ['accept'];
const declared = new Map(operations.map((operation) => [`${operation.method} ${operation.path}`, operation]));
const all: readonly Named[] = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => {
    const name = `${method.toUpperCase()} ${path}`;
    return { name, described: operation, operation: declared.get(name) };
  }),
);

/** The value with its references to responses, parameters, links and headers replaced by what they name. */
function withReferencesRead(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withReferencesRead);
  const { $ref } = z.looseObject({ $ref: z.string().optional() }).parse(value);
  if ($ref === undefined || $ref.startsWith('#/components/schemas/'))
    return Object.fromEntries(Object.entries(value).map(([name, child]) => [name, withReferencesRead(child)]));
  const [kind = '', name = ''] = $ref.replace('#/components/', '').split('/');
  const target = z.record(z.string(), z.record(z.string(), z.unknown())).parse(raw.components)[kind]?.[name];
  if (target === undefined) throw new Error(`${$ref} is not in the document`);
  return withReferencesRead(target);
}

/** The fields of a named schema, with those of the schemas that it extends. */
function fieldsOf(name: string | undefined): Record<string, Record<string, unknown>> {
  const Extending = z.looseObject({
    $ref: z.string().optional(),
    allOf: z.array(z.looseObject({})).default([]),
    properties: z.record(z.string(), z.looseObject({})).default({}),
  });
  const fields = (schema: unknown): Record<string, Record<string, unknown>> => {
    const { $ref, allOf, properties } = Extending.parse(schema);
    return Object.assign(
      $ref === undefined ? {} : fieldsOf($ref.replace('#/components/schemas/', '')),
      ...allOf.map(fields),
      properties,
    );
  };
  return fields(document.components.schemas[name ?? ''] ?? {});
}

/** The names of the operations that break a rule. */
const breaking = (rule: (named: Named) => boolean): string[] =>
  all.filter((named) => !rule(named)).map(({ name }) => name);
/** Expects that every operation keeps a rule. */
const expectAll = (rule: (named: Named) => boolean): void => expect(breaking(rule)).toEqual([]);
const componentOf = (content: z.infer<typeof Content> | undefined): string | undefined =>
  content?.['application/json']?.schema?.$ref?.replace('#/components/schemas/', '');
const successOf = ({ described }: Named) =>
  Object.entries(described.responses).filter(([status]) => status.startsWith('2'));

/** Every schema below this value, references followed. */
function schemasUnder(value: unknown, seen = new Set<unknown>()): Record<string, unknown>[] {
  if (typeof value !== 'object' || value === null || seen.has(value)) return [];
  seen.add(value);
  const { $ref } = z.looseObject({ $ref: z.string().optional() }).catch({}).parse(value);
  const target =
    $ref === undefined ? undefined : document.components.schemas[$ref.replace('#/components/schemas/', '')];
  return [{ ...value }, ...Object.values({ ...value, target }).flatMap((child) => schemasUnder(child, seen))];
}

describe('the document', () => {
  test.each(['config', 'runtime', 'inFlight'])(
    'is refused, and not waited for, if it needs what is not given: %s',
    async (name) => {
      const others = Object.fromEntries(Object.entries(GIVEN).filter(([given]) => given !== name));
      await expect(describeApi(others)).rejects.toThrow(`${name} was used while the OpenAPI document was made`);
    },
  );

  test('has version 2.0.0', () => {
    expect([document.openapi, document.info.version]).toEqual(['3.1.0', '2.0.0']);
  });

  test('describes exactly the registered routes', () => {
    expect(operations.length).toBeGreaterThan(0);
    expect(new Set(all.map(({ name }) => name))).toEqual(
      new Set(operations.map(({ method, path }) => `${method} ${path}`)),
    );
  });

  test("has FastAPI's HTTPValidationError, exactly", () => {
    expect(document.components.schemas['HTTPValidationError']).toEqual({
      properties: {
        detail: { items: { $ref: '#/components/schemas/ValidationError' }, type: 'array', title: 'Detail' },
      },
      type: 'object',
      title: 'HTTPValidationError',
    });
    expect(document.components.schemas['ValidationError']).toEqual({
      properties: {
        loc: { items: { anyOf: [{ type: 'string' }, { type: 'integer' }] }, type: 'array', title: 'Location' },
        msg: { type: 'string', title: 'Message' },
        type: { type: 'string', title: 'Error Type' },
      },
      type: 'object',
      required: ['loc', 'msg', 'type'],
      title: 'ValidationError',
    });
    expect(
      HTTPValidationError.safeParse({
        detail: [{ loc: ['body', 'signers', 0], msg: 'Field required', type: 'missing' }],
      }).success,
    ).toBe(true);
  });

  test('lists every error code', () => {
    expect(fieldsOf('Problem')['code']).toMatchObject({ $ref: '#/components/schemas/ErrorCode' });
    expect(document.components.schemas['ErrorCode']).toMatchObject({ enum: ERROR_CODES });
  });

  test.for([
    ['IdempotencyKeyReusedProblem', 'mismatch'],
    ['LaunchGatesClosedProblem', 'gates'],
    ['QuotaExceededProblem', 'quota'],
    ['ScopeInsufficientProblem', 'required_scope'],
    ['StateConflictProblem', 'current_state'],
  ] as const)('promises what the contract names for a code: %s has %s', ([name, member]) => {
    expect(document.components.schemas[name]).toMatchObject({
      allOf: [{}, { required: expect.arrayContaining([member]) }],
    });
  });
});

describe('every operation', () => {
  test('has an example of every value in requests and answers', () => {
    const SHOWN = ['example', 'enum', 'const', 'default', '$ref'];
    const COMPOSED = ['object', 'array', 'boolean'];
    const Options = z.looseObject({ anyOf: z.array(z.looseObject({})).default([]), type: z.unknown().optional() });
    const isShown = (schema: Record<string, unknown>): boolean => {
      const { anyOf, type } = Options.parse(schema);
      return (
        SHOWN.some((word) => word in schema) ||
        COMPOSED.includes(String(type)) ||
        anyOf.some((option) => option['type'] !== 'null' && isShown(option))
      );
    };
    const unshown = Object.entries(document.components.schemas).flatMap(([name, schema]) => {
      const { properties } = z
        .looseObject({ properties: z.record(z.string(), z.looseObject({})).default({}) })
        .parse(schema);
      // The two schemas of FastAPI stay as they are.
      return 'example' in schema || name === 'ValidationError'
        ? []
        : Object.entries(properties).flatMap(([field, value]) => (isShown(value) ? [] : [`${name}.${field}`]));
    });
    expect(unshown).toEqual([]);
  });

  test('has one success, described, with a schema where it has a body', () => {
    expectAll((named) => successOf(named).length === 1);
    const isDescribed = (named: Named) =>
      successOf(named).every(([, answer]) => answer.description !== '' && answer.description !== 'Default Response');
    expectAll(isDescribed);
    const hasSchema = (named: Named) =>
      successOf(named).every(
        ([status, { content }]) =>
          status === '204' || Object.values(content ?? {}).some(({ schema }) => schema !== undefined),
      );
    expectAll(hasSchema);
  });

  test('calls no other answer a success', () => {
    const isTrue = ({ described }: Named) =>
      Object.entries(described.responses).every(
        ([status, { description }]) => status < '3' || description !== 'Success.',
      );
    expectAll(isTrue);
  });

  test('has the names for request and answer that clients know', () => {
    const named = all.filter(({ name }) => name in SCHEMA_NAMES);
    expect(named.length).toBeGreaterThan(0);
    for (const operation of named) {
      const [request, answer] = SCHEMA_NAMES[operation.name] ?? [];
      if (request !== null)
        expect([operation.name, componentOf(operation.described.requestBody?.content)]).toEqual([
          operation.name,
          request,
        ]);
      if (answer !== null)
        expect([operation.name, ...successOf(operation).map(([, { content }]) => componentOf(content))]).toEqual([
          operation.name,
          answer,
        ]);
    }
  });

  test('has its query parameters and headers, in the spelling of the contract', () => {
    const shapeOf = (schema: unknown) => (schema instanceof z.ZodObject ? Object.keys(schema.shape) : []);
    const documented = ({ described }: Named, place: string) =>
      described.parameters.filter((parameter) => parameter.in === place).map(({ name }) => name);
    expectAll((named) =>
      shapeOf(named.operation?.schema.querystring).every((name) => documented(named, 'query').includes(name)),
    );
    const headers = (named: Named) => [
      ...documented(named, 'header').map((name) => name.toLowerCase()),
      ...DESCRIBED_ELSEWHERE,
    ];
    expectAll((named) => shapeOf(named.operation?.schema.headers).every((name) => headers(named).includes(name)));
    const spelled = new Set(all.flatMap((named) => documented(named, 'header')));
    const others = [...spelled].filter((name) => !/^[A-Z][A-Za-z]*(-[A-Z][A-Za-z]*)*$/.test(name));
    expect(others).toEqual(['authorization']);
    expect(spelled).toContain('Idempotency-Key');
  });

  test('documents 422 as HTTPValidationError exactly if it takes input', () => {
    const takesInput = ({ operation }: Named) =>
      [operation?.schema.body, operation?.schema.params, operation?.schema.querystring, operation?.schema.headers].some(
        (part) => part !== undefined,
      );
    const shapeOf422 = ({ described }: Named) => componentOf(described.responses['422']?.content);
    expectAll((named) => shapeOf422(named) === (takesInput(named) ? 'HTTPValidationError' : undefined));
  });

  test('documents every other refusal as a problem with a code', () => {
    const refusals = ({ described }: Named) =>
      Object.entries(described.responses).filter(([status]) => /^([45]|default$)/.test(status) && status !== '422');
    const problems = ({ content }: z.infer<typeof Answer>): (string | undefined)[] => {
      const { $ref, anyOf = [] } = z
        .looseObject({ $ref: z.string().optional(), anyOf: z.array(z.looseObject({ $ref: z.string() })).optional() })
        .parse(content?.['application/problem+json']?.schema ?? {});
      return $ref === undefined ? anyOf.map((option) => option.$ref) : [$ref];
    };
    const isProblem = (answer: z.infer<typeof Answer>) =>
      problems(answer).length > 0 && problems(answer).every((name) => name?.endsWith('Problem'));
    expectAll(
      (named) => named.name === 'GET /health/ready' || refusals(named).every(([, answer]) => isProblem(answer)),
    );
    const hasCode = (answer: z.infer<typeof Answer>) =>
      ERROR_CODES.some((code) => answer.description.includes(`\`${code}\``));
    expectAll((named) => named.name === 'GET /health/ready' || refusals(named).every(([, answer]) => hasCode(answer)));
  });

  test('names the scope of an API key in its description too', () => {
    const said = ({ described, operation }: Named) =>
      operation?.access.auth !== 'api_key' || described.description?.includes(`Scope: \`${operation.access.scope}\``);
    expectAll((named) => said(named) === true);
  });

  test('marks the legacy way to a settlement as deprecated, and nothing else', () => {
    expect(breaking(({ described }) => described.deprecated !== true)).toEqual(['POST /v1/caribbean/settle']);
  });

  test('has no form of an id that the server does not hold', () => {
    const forms = [...JSON.stringify(document).matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)].map(([, form = '""']) =>
      String(JSON.parse(form)),
    );
    expect(forms.length).toBeGreaterThan(10);
    expect(forms.filter((form) => /stl_|\[89ab\]/.test(form))).toEqual([]);
  });

  test('has only security schemes that generators of clients know', () => {
    const schemes = Object.values(document.components?.['securitySchemes'] ?? {});
    const kinds = schemes.map((scheme) =>
      'type' in scheme && scheme.type === 'http' ? scheme.scheme : 'type' in scheme && scheme.type,
    );
    expect(kinds).toEqual(['apiKey', 'bearer']);
  });

  test('documents its credential with the scope, and 401 where one is needed', () => {
    const security = {
      optional_api_key: [{}, { ApiKey: [] }],
      session: [{ ConsumerSession: [] }],
      signature: [],
      none: [],
    };
    const declared = ({ operation }: Named) => {
      if (!operation) return undefined;
      return operation.access.auth === 'api_key'
        ? [{ ApiKey: [operation.access.scope] }]
        : security[operation.access.auth];
    };
    expectAll((named) => JSON.stringify(named.described.security) === JSON.stringify(declared(named)));
    expectAll((named) => named.operation?.access.auth === 'none' || named.described.responses['401'] !== undefined);
  });

  test('has one answer for what every operation can refuse, with its statuses and X-Request-ID', () => {
    const faults = (named: Named) => named.described.responses['default']?.description ?? '';
    const isCommand = ({ name }: Named) => !name.startsWith('GET ');
    for (const line of ['500 `internal_error`', '503 `temporarily_unavailable`'])
      expectAll((named) => faults(named).includes(line));
    for (const line of ['408 `request_timeout`', '413 `payload_too_large`', '415 `unsupported_media_type`'])
      expectAll((named) => faults(named).includes(line) === isCommand(named));
    const headers = ({ described }: Named) => Object.keys(described.responses['default']?.headers ?? {});
    expectAll((named) => headers(named).includes('X-Request-ID'));
    expect(document.info.description).toContain('Every answer has `X-Request-ID`');
  });

  test('has closed request bodies and open answers', () => {
    const bodies = ({ described }: Named) => Object.values(described.requestBody?.content ?? {});
    const isClosed = (schema: Record<string, unknown>) =>
      schema['type'] !== 'object' || 'propertyNames' in schema || schema['additionalProperties'] === false;
    const fromPartner = (named: Named) => named.operation?.access.auth !== 'signature';
    expectAll(
      (named) =>
        !fromPartner(named) ||
        bodies(named)
          .flatMap((body) => schemasUnder(body.schema))
          .every(isClosed),
    );
    const answers = (named: Named) =>
      successOf(named).flatMap(([, { content }]) =>
        Object.values(content ?? {}).flatMap(({ schema }) => schemasUnder(schema)),
      );
    expectAll((named) => answers(named).every((schema) => schema['additionalProperties'] !== false));
  });
});

describe('a link', () => {
  const linked = all.flatMap((from) =>
    Object.entries(from.described.responses).flatMap(([status, { links, content }]) =>
      Object.entries(links).map(([name, link]) => ({
        title: `${from.name} ${status} ${name}`,
        ...{ name, link, content, from },
        to: all.find(({ described }) => described.operationId === link.operationId),
      })),
    ),
  );

  test('leads to another read, under the name of its operation, with the same credential', () => {
    expect(linked.length).toBeGreaterThan(20);
    for (const { title, name, link, from, to } of linked) {
      expect(name, title).toBe(link.operationId);
      expect(to?.name, title).toMatch(/^GET /);
      expect(to?.name, title).not.toBe(from.name);
      expect(to?.operation?.access.auth, title).toBe(from.operation?.access.auth);
    }
  });

  test('gives every parameter of the path, and no other, from a field of the answer', () => {
    for (const { title, link, content, to } of linked) {
      const parameters = to?.described.parameters.filter((parameter) => parameter.in === 'path') ?? [];
      expect(Object.keys(link.parameters), title).toEqual(parameters.map(({ name }) => name));
      const properties = fieldsOf(componentOf(content));
      for (const expression of Object.values(link.parameters))
        expect(Object.keys(properties), title).toContain(expression.replace('$response.body#/', ''));
    }
  });

  test.each([
    ['POST /v1/webhooks/{webhook_id}/test', 'GET /v1/webhooks/{webhook_id}/deliveries'],
    ['GET /v2/settle/{settlement_id}', 'GET /v1/caribbean/certificate/{cert_id}'],
    ['GET /v2/settle/{settlement_id}', 'GET /v1/caribbean/certificate/{cert_id}/verify'],
    ['GET /consumer/transfers/{transfer_id}', 'GET /consumer/transfers/{transfer_id}/certificate'],
  ])('leads from %s to %s', (from, to) => {
    expect(linked.filter((link) => link.from.name === from).map((link) => link.to?.name)).toContain(to);
  });

  test('leads from every answer of 201 or 202 that needs a credential and names an object with a read', () => {
    const readable = all.flatMap(({ name }) => /^GET [^{]*\{([a-z_]+)\}$/.exec(name)?.[1] ?? []);
    const isRead = ({ described, name }: Named) =>
      Object.entries(described.responses).every(([status, { content, links }]) => {
        const properties = fieldsOf(componentOf(content));
        const isCreation = ['201', '202'].includes(status) && (described.security ?? []).length > 0;
        const ids = Object.keys(properties).filter((field) => readable.includes(field) && !name.includes('/consumer/'));
        return !isCreation || ids.length === 0 || Object.keys(links).length > 0;
      });
    expectAll(isRead);
  });
});

describe('a client made from the document', () => {
  const schemas = Object.entries(document.components.schemas);

  /** Every object below this value with its place. */
  function placesIn(value: unknown, place: string): { place: string; value: Record<string, unknown> }[] {
    if (typeof value !== 'object' || value === null) return [];
    const below = Object.entries(value).flatMap(([name, child]) => placesIn(child, `${place}.${name}`));
    return Array.isArray(value) ? below : [{ place, value: { ...value } }, ...below];
  }

  test('has a name for every enumeration and every object', () => {
    // A generator numbers what has no name: Status, Status1, … Status19.
    const unnamed = schemas.flatMap(([name, schema]) =>
      Object.entries(fieldsIn(schema)).flatMap(([field, property]) =>
        placesIn(property, `${name}.${field}`)
          .filter(({ place }) => !/\.(example|examples|mapping)(\.|$)/.test(place))
          .filter(({ value }) => 'enum' in value || 'properties' in value)
          .map(({ place }) => place),
      ),
    );
    expect(unnamed).toEqual([]);
  });

  test('knows the form of every event by its type, and of its data', () => {
    expect(Object.keys(document.webhooks)).toEqual([...EVENT_TYPES]);
    for (const [type, { post }] of Object.entries(document.webhooks)) {
      const fields = fieldsOf(componentOf(post.requestBody?.content));
      expect(fields['type'], type).toMatchObject({ const: type });
      expect(fields['data'], type).toMatchObject({ $ref: expect.stringMatching(/^#\/components\/schemas\/./) });
      expect(fields['id'], type).toBeDefined();
    }
    const { oneOf } = z.looseObject({ oneOf: z.array(z.unknown()) }).parse(document.components.schemas['WebhookEvent']);
    expect(oneOf).toEqual(
      Object.values(document.webhooks).map(({ post }) => post.requestBody?.content['application/json']?.schema),
    );
  });

  test('learns which enumerations of answers may grow', () => {
    const enumerations = schemas.filter(([, schema]) => 'enum' in schema);
    expect(enumerations.length).toBeGreaterThan(30);
    expect(enumerations.filter(([, { description }]) => typeof description !== 'string')).toEqual([]);
    const answers = new Set(
      all.flatMap((named) =>
        successOf(named).flatMap(([, { content }]) => schemasUnder(content).flatMap(({ $ref }) => $ref ?? [])),
      ),
    );
    const silent = enumerations
      .filter(([name]) => answers.has(`#/components/schemas/${name}`))
      .filter(([, { description }]) => !String(description).endsWith(MAY_GROW))
      .map(([name]) => name);
    // These are closed by the contract, or have only the values of requests.
    expect(silent.sort()).toEqual(CLOSED);
  });

  test('finds no header twice: a key, and what the answers describe, is no parameter', () => {
    const names = ({ described }: Named) =>
      described.parameters.filter((parameter) => parameter.in === 'header').map(({ name }) => name.toLowerCase());
    const { securitySchemes } = z
      .looseObject({ securitySchemes: z.record(z.string(), z.looseObject({ name: z.string().optional() })) })
      .parse(raw.components);
    const keys = Object.values(securitySchemes).map(({ name = '' }) => name.toLowerCase());
    expect(keys).toContain('x-api-key');
    expectAll((named) => !names(named).some((name) => keys.includes(name)));
    expectAll((named) => !DESCRIBED_ELSEWHERE.some((name) => names(named).includes(name)));
  });

  test('finds `authorization` as an optional text of at most 256 characters, or null, where a session is needed', () => {
    const TEXT_OR_NULL = [{ type: 'string', maxLength: 256 }, { type: 'null' }];
    const optional = (named: Named) =>
      named.described.parameters.filter(
        ({ name, required = false, schema }) =>
          name === 'authorization' && !required && JSON.stringify(schema['anyOf']) === JSON.stringify(TEXT_OR_NULL),
      );
    const needsSession = ({ operation }: Named) => operation?.access.auth === 'session';
    expectAll((named) => optional(named).length === (needsSession(named) ? 1 : 0));
  });

  test.each(LIMITS)(
    'finds %s, required: %s, with the limits of the specification',
    (place, required, schema, names) => {
      const found = names.map((name) =>
        all
          .find((named) => named.name === name)
          ?.described.parameters.find((parameter) => `${parameter.in} ${parameter.name}` === place),
      );
      for (const parameter of found) {
        expect(parameter?.required ?? false).toBe(required);
        expect(parameter?.schema).toMatchObject(schema);
      }
    },
  );

  test("finds no parameter of a page at a consumer's list", () => {
    const lists = all.filter(({ name }) => /^GET .consumer.(transfers|recipients)$/.test(name));
    expect(lists.map(({ described }) => described.parameters.map(({ name }) => name))).toEqual([
      ['authorization'],
      ['authorization'],
    ]);
  });

  test.each([
    ['POST /v2/webhooks/cardproc', ['Cardproc-Signature']],
    ['POST /v2/webhooks/bankledger', ['X-Signature']],
    ['POST /v2/webhooks/idverify', ['X-Payload-Digest', 'X-Payload-Digest-Alg']],
  ])('finds the signature of %s', (name, headers) => {
    const parameters = all.find((named) => named.name === name)?.described.parameters ?? [];
    expect(parameters.map((parameter) => [parameter.in, parameter.name, parameter.required])).toEqual(
      headers.map((header) => ['header', header, true]),
    );
  });

  test('reads of 429 only where it is sent', () => {
    const isCounted = ({ operation }: Named) => operation?.access.uncounted !== true;
    const isSent = ({ described }: Named) =>
      Object.entries(described.responses).some(
        ([status, { description }]) => status === '429' || description.includes('429 `rate_limited`'),
      );
    expectAll((named) => isCounted(named) === isSent(named));
  });
});

/** The fields of one schema, without those that it extends. */
function fieldsIn(schema: unknown): Record<string, Record<string, unknown>> {
  const Own = z.looseObject({
    allOf: z.array(z.looseObject({})).default([]),
    properties: z.record(z.string(), z.looseObject({})).default({}),
  });
  const { allOf, properties } = Own.parse(schema);
  return Object.assign({}, ...allOf.map(fieldsIn), properties);
}

describe('a reader', () => {
  // A field that has nothing to add has the description of its type.
  const isDescribed = ($ref: unknown) =>
    typeof document.components.schemas[String($ref).replace('#/components/schemas/', '')]?.['description'] === 'string';

  test('finds a description of every field', () => {
    // The two schemas of FastAPI stay as they are.
    const undescribed = Object.entries(document.components.schemas)
      .filter(([name]) => !['HTTPValidationError', 'ValidationError'].includes(name))
      .flatMap(([name, schema]) =>
        Object.entries(fieldsIn(schema)).flatMap(([field, { description, $ref }]) =>
          typeof description === 'string' && description.length > 5
            ? []
            : isDescribed($ref)
              ? []
              : [`${name}.${field}`],
        ),
      );
    expect(undescribed).toEqual([]);
  });
});
