/**
 * The API reference (contract §15), rendered here from the OpenAPI document: a page of contents, and one page for each
 * group of operations and for the events. No page asks for a key or calls an operation.
 */
import { html } from 'ghtml';
import type { OpenAPIV3_1 } from 'openapi-types';
import { EVENT_TYPES } from '../../domain/event.ts';
import { sectionId } from '../../domain/failure-help.ts';
import { type Compressible, compressible } from '../http/compression.ts';
import { TAGS } from '../openapi/document.ts';
import { type Example, type Examples, readExamples } from '../openapi/example.ts';
import type { Operation } from '../plugins/operation-list.ts';
import { breakable, codeBlock, inlineCode } from './code.ts';
import {
  type Frame,
  type Heading,
  heading,
  type Place,
  document as pageOf,
  searchForm,
  sideOf,
  stepsOf,
} from './layout.ts';
import { bodyFields, fieldList, prose, type Schema, wholeOf } from './schema.ts';

const INDEX: Place = { path: '/docs', title: 'API reference' };
const groupPath = (group: string): string => `/docs/reference/${sectionId(group)}`;
const EVENTS: Place = { path: groupPath('Events'), title: 'Events' };

/** The pages of the reference, in the order of `Next`. */
export const REFERENCE_PLACES: readonly Place[] = [
  INDEX,
  ...Object.keys(TAGS).map((title) => ({ path: groupPath(title), title })),
  EVENTS,
];
const SIDE: readonly Place[] = [...REFERENCE_PLACES, { path: '/docs/quickstart', title: 'Guides' }];

/** An operation as the document describes it. */
export type Described = OpenAPIV3_1.OperationObject & {
  readonly operationId: string;
  readonly method: string;
  readonly path: string;
};

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const;

export const describedOf = (document: OpenAPIV3_1.Document): Described[] =>
  Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item?.[method];
      return operation ? [{ operationId: '', ...operation, method: method.toUpperCase(), path } as Described] : [];
    }),
  );

/** Where an operation is described. */
export const operationAddress = ({ tags = [], operationId }: Pick<Described, 'tags' | 'operationId'>): string =>
  `${groupPath(tags[0] ?? '')}#${operationId}`;
export const eventAddress = (type: string): string => `${EVENTS.path}#${sectionId(type)}`;

/** The contents: what all operations have in common, and every operation. */
export function referencePage(frame: Frame, operations: readonly Operation[]): string {
  const shown = operations.filter(({ schema }) => !schema.hide);
  const headings = Object.keys(TAGS).map((text) => ({ id: sectionId(text), text, depth: 2 }));
  return pageOf(frame, {
    ...INDEX,
    side: sideOf('Reference', SIDE, { path: INDEX.path, headings: [] }),
    main: html`<h1>API reference</h1>
!${searchForm()}
<p>Send your key as !${inlineCode('X-API-Key')}, and an !${inlineCode('Idempotency-Key')} with each command that takes
one: <a href="/docs/retries">safe retries</a>. A refusal has a <code>code</code>: <a href="/docs/errors">errors</a>. The
examples are from a run of the local sandbox; their secrets and long lists are cut. In the shell, <code>API</code> is
the address of the service.</p>
<p>Generated clients read <a href="/openapi.json">the OpenAPI document</a>. The repository has two clients as sources,
for TypeScript (<code>clients/typescript</code>) and Python (<code>clients/python</code>), which retry and verify for
you.</p>
!${headings.map((group) => operationGroup(group, shown))}
<section>
!${heading({ id: 'events', depth: 2 }, html`<a href="${EVENTS.path}">Events</a>`)}
<p>What <a href="/docs/webhooks">webhooks</a> and the list of events contain, by type.</p>
<p>!${EVENT_TYPES.map((type) => html`<a href="${eventAddress(type)}"><code>${type}</code></a> `)}</p>
</section>`,
  });
}

/** As on the pages: each path once, and its reads first. */
function inOrder(operations: readonly Operation[]): Operation[] {
  const paths = [...new Set(operations.map(({ path }) => path))];
  return paths.flatMap((path) =>
    METHODS.flatMap((name) => operations.filter((one) => one.path === path && one.method === name.toUpperCase())),
  );
}

const operationGroup = ({ id, text }: Heading, operations: readonly Operation[]): string =>
  html`<section>
!${heading({ id, depth: 2 }, html`<a href="${groupPath(text)}">${text}</a>`)}
<p>${TAGS[text as keyof typeof TAGS]}</p>
<dl class="operations">
!${inOrder(operations.filter(({ schema }) => schema.tags?.[0] === text)).map(
    ({ method, path, schema }) =>
      html`<div><dt><code>!${breakable(`${method} ${path}`)}</code></dt><dd><a href="${operationAddress({
        tags: [text],
        operationId: schema.operationId ?? '',
      })}">${schema.summary}</a></dd></div>`,
  )}
</dl>
</section>
`;

/** Renders the page of a group at its first request. Undefined for an unknown group. */
export function createReferencePages(
  frame: Frame,
  readDocument: () => OpenAPIV3_1.Document,
): (group: string) => Promise<Compressible | undefined> {
  const rendered = new Map<string, Compressible>();
  return async (group) => {
    const place = REFERENCE_PLACES.find(({ path }) => path === `/docs/reference/${group}`);
    if (place === undefined) return undefined;
    const page =
      rendered.get(group) ?? compressible(Buffer.from(groupPage(frame, place, readDocument(), await readExamples())));
    rendered.set(group, page);
    return page;
  };
}

function groupPage(frame: Frame, place: Place, document: OpenAPIV3_1.Document, examples: Examples): string {
  const operations = describedOf(document).filter(({ tags }) => tags?.[0] === place.title);
  const headings =
    place === EVENTS
      ? EVENT_TYPES.map((type) => ({ id: sectionId(type), text: type, depth: 2 }))
      : operations.map(({ operationId: id, summary = '' }) => ({ id, text: summary, depth: 2 }));
  return pageOf(frame, {
    ...place,
    side: sideOf('Reference', SIDE, { path: place.path, headings }),
    main: html`<h1>${place.title}</h1>
!${searchForm()}
!${
      place === EVENTS
        ? html`<p class="lead">The body of each delivery, and of <code>GET /v1/events</code>, by its <code>type</code>.
<a href="/docs/webhooks">Webhooks</a> says how to receive and verify them.</p>
!${EVENT_TYPES.map((type) => eventSection(document, type, examples))}`
        : html`<p class="lead">${TAGS[place.title as keyof typeof TAGS]}</p>
!${operations.map((operation) => operationSection(document, operation, examples[operation.operationId]))}`
    }
!${stepsOf(REFERENCE_PLACES, place.path)}`,
  });
}

function eventSection(document: OpenAPIV3_1.Document, type: string, examples: Examples): string {
  const received = (document.webhooks?.[type] as OpenAPIV3_1.PathItemObject | undefined)?.post;
  const body = received?.requestBody as OpenAPIV3_1.RequestBodyObject | undefined;
  const schema = body?.content['application/json']?.schema;
  return html`<section>
!${heading({ id: sectionId(type), depth: 2 }, html`<code>${type}</code>`)}
<p>!${prose(received?.summary ?? '')}</p>
!${exampleBlock('Event', examples[type]?.answer)}
!${schema === undefined ? '' : fieldsOf(document, schema as Schema)}
</section>
`;
}

const DEPRECATED = ' <span class="state">deprecated</span>';

function operationSection(document: OpenAPIV3_1.Document, operation: Described, example: Example | undefined): string {
  const { summary = '', description = '', deprecated } = operation;
  const body = requestBody(operation);
  return html`<section>
!${heading({ id: operation.operationId, depth: 2 }, html`${summary}`)}
<p><code>!${breakable(`${operation.method} ${operation.path}`)}</code>!${deprecated ? DEPRECATED : ''}</p>
<p>!${prose(description)}</p>
!${codeBlock({ text: curl(operation, example ?? { body: schemaExample(document, body) }), label: 'Shell' })}
!${exampleBlock(`Answer ${example?.status ?? ''}`.trim(), example?.answer)}
!${parameters(document, operation)}
!${body === undefined ? '' : html`<h3>Body</h3>!${bodyFields(document, body, 0, true)}`}
!${answers(document, operation)}
</section>
`;
}

const fieldsOf = (document: OpenAPIV3_1.Document, schema: Schema): string =>
  html`<details><summary>Fields</summary>!${bodyFields(document, schema)}</details>`;

const exampleBlock = (label: string, value: unknown): string =>
  value === undefined ? '' : codeBlock({ text: JSON.stringify(value, null, 2), label, isOutput: true });

const requestBody = ({ requestBody: body }: Described): Schema | undefined =>
  body && 'content' in body ? (body.content['application/json']?.schema as Schema | undefined) : undefined;

function parameters(document: OpenAPIV3_1.Document, { parameters: given = [] }: Described): string {
  const fields = given.flatMap((parameter) =>
    'in' in parameter
      ? [
          {
            name: parameter.name,
            schema: (parameter.schema ?? {}) as Schema,
            note: `, in the ${parameter.in}${parameter.required ? ', required' : ''}`,
            description: parameter.description,
          },
        ]
      : [],
  );
  return fields.length === 0 ? '' : html`<h3>Parameters</h3>!${fieldList(document, fields)}`;
}

/** The answers: the fields of the successes, and the codes of the refusals. */
function answers(document: OpenAPIV3_1.Document, { responses = {} }: Described): string {
  const all = Object.entries(responses).map(([status, given]) => {
    const name = '$ref' in given ? given.$ref.replace('#/components/responses/', '') : undefined;
    const response = name === undefined ? given : document.components?.responses?.[name];
    return { status, response: response as OpenAPIV3_1.ResponseObject };
  });
  const successes = all.filter(({ status }) => /^[23]/.test(status));
  const refusals = all.filter(({ status }) => !/^[23]/.test(status));
  // A code that has its own status is not repeated under "At any time".
  const named = refusals.filter(({ status }) => status !== 'default').flatMap(({ response }) => codesOf(response));
  return html`<h3>Answers</h3>
!${successes.map(({ status, response }) => {
    const schema = response.content?.['application/json']?.schema as Schema | undefined;
    return html`<p><strong>${status}</strong> !${prose(response.description)}</p>!${
      schema === undefined ? '' : fieldsOf(document, schema)
    }`;
  })}
<ul class="refusals">
!${refusals.map(({ status, response }) => {
    const codes = codesOf(response);
    return refusal(status, status === 'default' ? codes.filter((code) => !named.includes(code)) : codes, response);
  })}
</ul>`;
}

/** A code stands at the beginning of each line of a refusal's description. */
const codesOf = ({ description }: OpenAPIV3_1.ResponseObject): string[] =>
  [...description.matchAll(/^(?:\d{3} )?`([a-z_]+)`:/gm)].map(([, code = '']) => code);

function refusal(status: string, codes: readonly string[], { description }: OpenAPIV3_1.ResponseObject): string {
  if (codes.length === 0) return html`<li><strong>${status}</strong> <a href="/docs/errors">${description}</a></li>`;
  return html`<li><strong>${status === 'default' ? 'At any time' : status}</strong> !${codes.map(
    (code) => html`<a href="/problems/${code}"><code>${code}</code></a> `,
  )}</li>`;
}

/** For an operation that no run recorded, because a provider calls it. */
const schemaExample = (document: OpenAPIV3_1.Document, body: Schema | undefined): unknown =>
  body && wholeOf(document, body).example;

/** A command to copy. The ids of an address are variables of the shell. */
function curl(operation: Described, example: Pick<Example, 'body' | 'query'>): string {
  const { operationId, method, path, parameters: given = [], security = [] } = operation;
  const address = path.replaceAll(/\{([a-z_]+)\}/g, (_part, name: string) => `$${name.toUpperCase()}`);
  const lines = [`curl -sS ${method === 'GET' ? '' : `-X ${method} `}"$API${address}${example.query ?? ''}"`];
  const schemes = security.flatMap((requirement) => Object.keys(requirement));
  if (schemes.includes('ApiKey')) lines.push('-H "X-API-Key: $API_KEY"');
  if (schemes.includes('ConsumerSession')) lines.push('-H "Authorization: Bearer $SESSION"');
  for (const parameter of given) {
    if (!('in' in parameter) || parameter.in !== 'header') continue;
    // A key belongs to one command: with the key of another one, the command would be 409.
    if (parameter.name === 'Idempotency-Key') lines.push(`-H 'Idempotency-Key: my-own-key-of-${operationId}'`);
    else if (parameter.required)
      lines.push(`-H "${parameter.name}: $${parameter.name.toUpperCase().replaceAll('-', '_')}"`);
  }
  if (example.body !== undefined)
    lines.push(
      `-H 'Content-Type: application/json'`,
      `-d '${JSON.stringify(example.body, null, 2).replaceAll("'", String.raw`'\''`)}'`,
    );
  return lines.join(' \\\n  ');
}
