/**
 * Compares answers with docs/openapi.json, which `npm run check` keeps up to date: status, media type, body with each of
 * its members, problem code and headers must be documented.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { z } from 'zod';
import { repositoryRoot } from '../../process/local/place.ts';

const DOCUMENT = path.join(repositoryRoot, 'docs', 'openapi.json');

/** The parts of the document that answers are compared with. The validator resolves the references. */
const Media = z.record(z.string(), z.object({ schema: z.unknown().optional() }));
const Response = z.looseObject({
  description: z.string(),
  content: Media.optional(),
  headers: z.record(z.string(), z.unknown()).default({}),
});
const Reference = z.strictObject({ $ref: z.string() });
const Described = z.looseObject({ responses: z.record(z.string(), z.union([Reference, Response])) });
const Document = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), Described)),
  components: z.looseObject({ responses: z.record(z.string(), Response) }),
});

export type SeenAnswer = {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
};

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
/** The headers of every answer (contract §1). */
const ALWAYS = ['x-request-id', 'x-content-type-options', 'cache-control'];
const BY_STATUS: Record<number, string> = { 401: 'www-authenticate', 405: 'allow', 429: 'retry-after' };
/** Headers that a client acts on. An answer that has one must document it. */
const DOCUMENTED = [
  'allow',
  'content-disposition',
  'etag',
  'idempotency-replayed',
  'link',
  'location',
  'preference-applied',
  'retry-after',
  'x-total-count',
];
/** Answers outside of every operation: the path or the method is unknown. */
const UNDESCRIBED: Record<number, string> = { 404: 'not_found', 405: 'method_not_allowed' };

const Problem = z.object({
  type: z.string(),
  status: z.int(),
  code: z.string(),
  request_id: z.string(),
  instance: z.string(),
});

/** Reading the document and compiling its schemas takes as long as a test, so all files of a process share them. */
let faultsOf: ReturnType<typeof answerChecker> | undefined;

/** @throws Error when the document does not contain such an answer */
export function requireConformance(method: string, url: string, answer: SeenAnswer): void {
  faultsOf ??= answerChecker();
  const faults = faultsOf(method, url, answer);
  if (faults.length > 0) throw new Error(`${faults.join('; ')}: ${answer.body.slice(0, SHOWN_LENGTH_MAX)}`);
}

const SHOWN_LENGTH_MAX = 500;
const RESPONSES = '#/components/responses/';

function answerChecker(): (method: string, url: string, answer: SeenAnswer) => string[] {
  const raw = Document.parse(JSON.parse(readFileSync(DOCUMENT, 'utf8')));
  const { paths, components } = raw;
  const ajv = new Ajv2020({
    strict: false,
    allErrors: true,
    logger: false,
    validateSchema: false,
    formats: { 'date-time': TIMESTAMP, email: true, binary: true },
  });
  ajv.addSchema({ ...raw, $id: 'document' });
  const compiled = new Map<string, ValidateFunction>();
  const patterns = Object.keys(paths).map((path) => ({
    path,
    expression: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{[^}]+\}/g, '[^/]*')}$`),
  }));

  const validatorOf = (pointer: readonly string[]): ValidateFunction => {
    const parts = pointer.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')));
    const $ref = `document#/${parts.join('/')}`;
    // The document names each member of an answer. Only for itself, as an answer, it does not.
    const closed = pointer.includes('/openapi.json') ? {} : { unevaluatedProperties: false };
    const known = compiled.get($ref) ?? ajv.compile({ $ref, ...closed });
    compiled.set($ref, known);
    return known;
  };

  type Given = z.infer<typeof Described>['responses'][string];
  /** The default answer, if its description lists this status. */
  const defaultFor = (status: number, given: Given | undefined): Given | undefined => {
    const shared = components.responses[Reference.safeParse(given).data?.$ref.replace(RESPONSES, '') ?? ''];
    return shared?.description.includes(`${status} \``) ? given : undefined;
  };

  const operationFaults = (path: string, method: string, answer: SeenAnswer): string[] => {
    const responses = paths[path]?.[method]?.responses ?? {};
    const given = responses[answer.statusCode] ?? defaultFor(answer.statusCode, responses['default']);
    const shared = given && '$ref' in given ? String(given.$ref).replace(RESPONSES, '') : undefined;
    const response = shared === undefined ? Response.optional().parse(given) : components.responses[shared];
    if (!response) return undescribedFaults(answer);
    const place =
      shared === undefined
        ? ['paths', path, method, 'responses', String(answer.statusCode)]
        : ['components', 'responses', shared];
    const media = mediaTypeOf(answer);
    const { content } = response;
    const headers = new Set(Object.keys(response.headers).map((name) => name.toLowerCase()));
    const undocumented = DOCUMENTED.filter((name) => answer.headers[name] !== undefined && !headers.has(name)).map(
      (name) => `header ${name} is not documented`,
    );
    if (answer.body === '')
      return content === undefined || method === 'head' ? undocumented : [...undocumented, 'the body is missing'];
    if (content?.[media] === undefined) return [...undocumented, `media type ${media} is not documented`];
    return [
      ...undocumented,
      ...(media.endsWith('json')
        ? bodyFaults(validatorOf([...place, 'content', media, 'schema']), answer, response.description)
        : []),
    ];
  };

  return (method, url, answer) => {
    const address = url.split('?')[0] ?? '';
    // A fixed path comes before one with identifiers, as in the router.
    const named = patterns
      .filter(({ expression }) => expression.test(address))
      .sort((a, b) => braces(a.path) - braces(b.path));
    const found = named.find(({ path }) => paths[path]?.[method.toLowerCase()] !== undefined);
    const ofStatus = isUntimed(answer) ? undefined : BY_STATUS[answer.statusCode];
    const missing = [...ALWAYS, ...(ofStatus === undefined ? [] : [ofStatus])].filter((name) => !answer.headers[name]);
    const specific = found ? operationFaults(found.path, method.toLowerCase(), answer) : undescribedFaults(answer);
    return [...missing.map((name) => `header ${name} is missing`), ...specific].map(
      (fault) => `${method} ${found?.path ?? address} ${answer.statusCode}: ${fault}`,
    );
  };
}

/** A quota that time does not free has no `Retry-After`. */
const isUntimed = ({ statusCode, body }: SeenAnswer): boolean =>
  statusCode === 429 && body.includes('"code":"quota_exceeded"');

const braces = (path: string): number => path.split('{').length;

const mediaTypeOf = ({ headers }: SeenAnswer): string => String(headers['content-type'] ?? '').split(';')[0] ?? '';

function undescribedFaults(answer: SeenAnswer): string[] {
  const code = UNDESCRIBED[answer.statusCode];
  if (code === undefined) return ['the status is not documented'];
  const problem = Problem.safeParse(jsonIn(answer.body));
  return problem.success && problem.data.code === code ? [] : [`the body is not the problem ${code}`];
}

/** The description of the answer must name the problem's code. */
function bodyFaults(validate: ValidateFunction, answer: SeenAnswer, description: string): string[] {
  const body = jsonIn(answer.body);
  const faults = validate(body)
    ? []
    : (validate.errors ?? []).map(
        ({ instancePath, message, params }) => `body${instancePath} ${message} ${JSON.stringify(params)}`,
      );
  if (mediaTypeOf(answer) !== 'application/problem+json') return faults;
  const problem = Problem.safeParse(body);
  if (!problem.success) return [...faults, 'the body is not a problem'];
  const { code, status, request_id: requestId } = problem.data;
  if (!description.includes(`\`${code}\``)) faults.push(`code ${code} is not documented`);
  if (status !== answer.statusCode) faults.push(`the status in the body is ${status}`);
  if (requestId !== answer.headers['x-request-id']) faults.push('the body has another request id than the header');
  return faults;
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
