import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { describe, expect } from 'vitest';
import { STATUS_OF } from '../../api/http/error-handler.ts';
import { EXAMPLES_FILE, type Example } from '../../api/openapi/example.ts';
import { loadAssets } from '../../api/pages/asset.ts';
import { certificateView } from '../../api/pages/certificate.ts';
import { certificateHtml } from '../../api/pages/certificate-html.ts';
import { certificatePdf } from '../../api/pages/certificate-pdf.ts';
import { GUIDE_PLACES } from '../../api/pages/guide.ts';
import { createMarkdown } from '../../api/pages/markdown.ts';
import { preferredType } from '../../api/pages/negotiation.ts';
import { qrCode } from '../../api/pages/qr-code.ts';
import { REFERENCE_PLACES } from '../../api/pages/reference.ts';
import { createSearch } from '../../api/pages/search.ts';
import { GATE_NAME, REASON_TEXT, statusPage } from '../../api/pages/status.ts';
import { IdempotencyKey } from '../../api/schemas/idempotency.ts';
import { CAPABILITY_CATALOG, NO_SURFACE } from '../../domain/capability-catalog.ts';
import { ERROR_CODES, ERROR_TEXT } from '../../domain/error.ts';
import { EVENT_TYPES } from '../../domain/event.ts';
import { allClosed } from '../../domain/gate.ts';
import { catalogResource } from '../../domain/resource/capability.ts';
import { gatesResource } from '../../domain/resource/gate.ts';
import { RUNTIME_ENVIRONMENTS } from '../../domain/runtime.ts';
import { banner } from '../../scripts/stack/banner.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { requireConformance } from '../support/conformance.ts';
import { withoutTriggers } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import type { Json } from '../support/partner.ts';
import { insertCertifiedSettlement } from '../support/settlement.ts';

const PAGES = [
  '/',
  '/docs/search?q=idempotency',
  ...REFERENCE_PLACES.map(({ path }) => path),
  '/status',
  '/problems',
  ...GUIDE_PLACES.map(({ path }) => path),
  ...[...ERROR_CODES, 'validation_error'].map((code) => `/problems/${code}`),
];
const NO_KEY = `CERT-${'0'.repeat(32)}`;

const test = withApi({ scope: 'read' })
  .extend('certId', FILE, async ({ api, partner }) => (await certified(api, partner)).certId)
  .extend(
    'certificate',
    FILE,
    ({ api, partner, certId }) =>
      (accept?: string, headers: Record<string, string> = {}) =>
        api.call(partner, 'GET', `/v1/caribbean/certificate/${certId}`, undefined, {
          ...(accept === undefined ? {} : { accept }),
          ...headers,
        }),
  );

const certified = (api: TestApi, { orgId }: Caller) => insertCertifiedSettlement(api.connection.db, orgId);
/** Not by `api.call`: the document has no pages to compare the answers with. */
const get = async (api: TestApi, url: string, headers: Record<string, string> = {}) =>
  await api.app.inject({ method: 'GET', url, headers });

/** Each page is made once: many tests read it, and pages have many links in common. */
const answers = new Map<string, ReturnType<typeof get>>();
function read(api: TestApi, address: string): ReturnType<typeof get> {
  const answer = answers.get(address) ?? get(api, address);
  answers.set(address, answer);
  return answer;
}
const statusOf = async (api: TestApi, address: string) => (await read(api, address)).statusCode;

/** The text that a reader sees: without tags, and with escapes decoded. */
const textOf = (html: string): string =>
  html
    .replace(/<style>.*?<\/style>/s, '')
    .replaceAll(/<wbr>|<\/?span[^>]*>/g, '')
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/&#(\d+);/g, (_entity, code) => String.fromCharCode(Number(code)))
    .replaceAll(/\s+/g, ' ');

/** What the button of an example copies. */
const codeOf = (html: string): string =>
  html.replaceAll(/<[^>]+>/g, '').replaceAll(/&#(\d+);/g, (_entity, code) => String.fromCharCode(Number(code)));

/** Every address that a browser loads for the page. */
const loadedBy = (html: string): string[] =>
  [...html.matchAll(/<(?:link|script|img|iframe)\b[^>]*?(?:href|src)="([^"]*)"/g)].map(([, address]) => address ?? '');

describe('an address that is not a page', () => {
  test.for(['/problems/__proto__', '/problems/%3Cscript%3E', '/assets/..%2Flayout.ts', '/docs/..%2Fcontract', '/x'])(
    '404 for %s: a problem, and a page for who reads and prefers one',
    async (url, { api }) => {
      const response = await get(api, url);
      expect(response.statusCode).toBe(404);
      expect(response.headers['content-type']).toMatch(/^application\/problem\+json/);
      expect(response.json()).toMatchObject({ code: 'not_found' });
      const page = await get(api, url, { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' });
      expect(page.statusCode).toBe(404);
      expect(page.headers).toMatchObject({ 'content-type': 'text/html; charset=utf-8', vary: 'Accept' });
      expect(textOf(page.body)).toContain('There is no page at this address.');
      expect(page.body).not.toContain('aria-current');
      const written = await api.app.inject({ method: 'POST', url, headers: { accept: 'text/html' } });
      expect(written.headers['content-type']).toMatch(/^application\/problem\+json/);
    },
  );

  test.for(['/', '/docs', '/docs/quickstart', '/status', '/problems/not_found'])(
    '405 for anything but reading %s',
    async (url, { api }) => {
      for (const method of ['POST', 'PUT', 'DELETE'] as const) {
        const response = await api.call(null, method, url);
        expect(response.statusCode).toBe(405);
        expect(response.headers.allow).toBe('GET');
      }
    },
  );

  test('no page is in the OpenAPI document', async ({ api }) => {
    const { paths } = (await read(api, '/openapi.json')).json();
    expect(Object.keys(paths).filter((path) => /^\/($|docs|status|problems|assets)/.test(path))).toEqual([]);
  });
});

describe.each(PAGES)('%s', (url) => {
  test('is a complete HTML page that is not cached and cannot be framed', async ({ api }) => {
    const { statusCode, headers, body } = await read(api, url);
    expect(statusCode).toBe(200);
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'content-security-policy':
        `default-src 'none'; base-uri 'none'; form-action '${body.includes('<form ') ? 'self' : 'none'}'; ` +
        "frame-ancestors 'none'; script-src 'self'; style-src 'self'; img-src 'self'",
    });
    expect(headers['set-cookie']).toBeUndefined();
    expect(body).toMatch(/^<!doctype html>\n<html lang="en">.*<title>[^<]+<\/title>/s);
    for (const once of [/<h1[ >]/g, /<main[ >]/g]) expect(body.match(once)).toHaveLength(1);
  });

  test('has no inline script, style or handler, and loads only from this server', async ({ api }) => {
    const { body } = await read(api, url);
    expect(body).not.toMatch(/<style|\sstyle="|\son[a-z]+="|javascript:|<script\b[^>]*>[^<]+/i);
    const loaded = loadedBy(body);
    expect(loaded).not.toEqual([]);
    for (const address of loaded) {
      expect(address).toMatch(/^\/assets\/[a-z]+-[0-9a-f]{16}\.(css|svg|js)$/);
      expect(await statusOf(api, address)).toBe(200);
    }
  });

  test('has no dead link to this server', async ({ api }) => {
    const { body } = await read(api, url);
    const links = new Set([...body.matchAll(/<a\b[^>]*?href="([^"#]+)"/g)].map(([, address]) => address ?? ''));
    for (const address of links) expect(await statusOf(api, address), address).toBe(200);
  });
});

test.for(RUNTIME_ENVIRONMENTS)(
  'shows the environment and the same first request as the terminal: %s',
  async (runtime, { newApi }) => {
    const apiUrl = 'http://127.0.0.1:3000';
    const own = await newApi({ runtime, config: { publicBaseUrl: apiUrl } });
    const shown = textOf((await own.app.inject('/')).body).replace(' \\ ', ' ');
    const places = { logDirectory: '', databaseUrl: '', migrationUrl: '', temporalAddress: '' };
    const printed = banner({ seconds: 1, runtime, dataDirectory: undefined, apiUrl, ...places });
    const terminal = stripVTControlCharacters(printed);
    expect(shown).toContain(terminal.match(/curl .*/)?.[0] ?? 'none');
    expect(shown).toContain(terminal.match(/[A-Z]{5,}[A-Z ]*: [^\n]*/)?.[0] ?? 'none');
    expect(shown).toContain('No corridor is live.');
    expect(terminal.includes('WEBHOOK_ALLOW_LOCAL_TARGETS')).toBe(runtime === 'local-sandbox');
  },
);

describe('/status', () => {
  test('offers nothing that is unavailable, and says of what is gated whether it exists', async ({ api }) => {
    const { body } = await get(api, '/status');
    const offer = (id: string) => /data-column="Offer">([^<]*)/.exec(body.split(`<tr id="${id}"`)[1] ?? '')?.[1];
    for (const { id, state, surface } of CAPABILITY_CATALOG.services) {
      const begins = { 'local sandbox': 'In ', unavailable: 'Not offered. It would belong to: ' };
      const gated = surface === NO_SURFACE ? 'Does not exist yet. It would' : 'Exists, and is outside the reviewed';
      const said = state === 'gated' ? gated : begins[state as keyof typeof begins];
      expect(offer(id)?.startsWith(said), `${id}: ${offer(id)}`).toBe(true);
    }
    expect(offer('jmd-local-payout')).toBe('Not offered. It would belong to: production, for authenticated partners.');
  });

  test('shows each capability as the JSON catalog does, all 25', async ({ api, partner }) => {
    const [{ body }, json] = await Promise.all([get(api, '/status'), api.call(partner, 'GET', '/v2/capabilities')]);
    const { services, updated_at: updatedAt } = json.json();
    const rows = body.split('<tr').filter((row) => row.startsWith(' id='));
    const shown = rows.map((row) => row.match(/^ id="([^"]*)"/)?.[1]);
    expect(new Set(shown)).toEqual(new Set(services.map(({ id }: { id: string }) => id)));
    expect([shown.length, body]).toEqual([25, expect.stringContaining(`datetime="${updatedAt}"`)]);
    for (const entry of services) {
      const row = rows.find((candidate) => candidate.startsWith(` id="${entry.id}"`)) ?? '';
      const { name, description, state, surface, environment, evidence_level: level, evidence } = entry;
      const gate = GATE_NAME[entry.next_gate as keyof typeof GATE_NAME];
      for (const said of [name, description, state, surface, environment, level, gate, ...evidence])
        expect(textOf(row)).toContain(said.replaceAll(/\s+/g, ' '));
      expect(row).toContain(`datetime="${entry.reviewed_at}"`);
    }
  });

  test('shows each gate as the JSON answer does', async ({ api, partner }) => {
    const [{ body }, json] = await Promise.all([get(api, '/status'), api.call(partner, 'GET', '/v2/launch-gates')]);
    const text = textOf(body);
    for (const { gate, open, reason } of json.json().gates) {
      const why = reason === null ? '' : ` ${REASON_TEXT[reason as keyof typeof REASON_TEXT]}`;
      expect(text).toContain(`${GATE_NAME[gate as keyof typeof GATE_NAME]} ${open ? 'open' : 'closed'}${why}`);
    }
    expect(text).toContain('Launch gates: all closed');
  });

  test.for([
    [0, 'all closed'],
    [2, '2 of 6 open'],
    [6, 'all open'],
  ] as const)('shows which gates are open, and why the others are closed: %i', async ([open, said]) => {
    const gates = allClosed('expired').map((gate, index) => (index < open ? { ...gate, reason: null } : gate));
    const text = textOf(
      statusPage(
        { runtime: 'local-sandbox', assets: await loadAssets() },
        catalogResource(CAPABILITY_CATALOG, true),
        gatesResource('local sandbox', gates),
      ),
    );
    expect(text).toContain(`Launch gates: ${said}`);
    for (const { gate, reason } of gates)
      expect(text).toContain(`${GATE_NAME[gate]} ${reason === null ? 'open' : `closed ${REASON_TEXT[reason]}`}`);
  });

  test('has entries that the catalog shows with a key only, which the first page says', async ({ api }) => {
    const [status, home, json] = await Promise.all(['/status', '/', '/v2/capabilities'].map((url) => get(api, url)));
    const shown: readonly { readonly name: string }[] = json?.json().services ?? [];
    expect(shown.length).toBeLessThan(CAPABILITY_CATALOG.services.length);
    for (const { name } of CAPABILITY_CATALOG.services) expect(textOf(status?.body ?? '')).toContain(name);
    expect(textOf(home?.body ?? '')).toContain('public entries of the status page as JSON; all with a key');
  });

  test('says that no corridor and no capability is live', async ({ api }) => {
    const text = textOf((await get(api, '/status')).body);
    expect(text).toContain('No live corridor.');
    expect(text).toContain('Live: none');
    expect(text).toContain('Maintenance: none');
  });

  test('escapes the texts of an entry', async () => {
    const hostile = `"><script>alert('x')</script><img src=x onerror=alert(1)>&amp;`;
    const texts = { name: hostile, description: hostile, surface: hostile, evidence: [hostile, hostile] };
    const entries = CAPABILITY_CATALOG.services.map((entry) => ({ ...entry, ...texts }));
    const html = statusPage(
      { runtime: 'local-sandbox', assets: await loadAssets() },
      catalogResource({ ...CAPABILITY_CATALOG, services: entries }, true),
      gatesResource('local sandbox', allClosed('unreadable')),
    );
    expect(html).not.toMatch(/<script(?! defer src="\/assets\/)|<img/);
    expect(textOf(html)).toContain(hostile);
  });
});

describe('/problems', () => {
  test.for(ERROR_CODES)('%s says what it means, its status and what to do next', async (code, { api }) => {
    const { body } = await read(api, `/problems/${code}`);
    expect(body).toContain(`<a href="/problems/${code}" aria-current="page">`);
    const text = textOf(body);
    for (const said of [ERROR_TEXT[code].title, ERROR_TEXT[code].detail, `Status ${STATUS_OF[code]} Code ${code}`])
      expect(text).toContain(said);
    const next = text.match(/What to do next (.*) In an answer/)?.[1] ?? '';
    expect(next.length).toBeGreaterThan(20);
    expect(text).toContain(`"code": "${code}"`);
  });

  test('have a next step of their own each, and are listed by status', async ({ api }) => {
    const pages = await Promise.all(
      ERROR_CODES.map(async (code) => textOf((await read(api, `/problems/${code}`)).body)),
    );
    const nextSteps = pages.map((text) => text.match(/What to do next (.*) In an answer/)?.[1]);
    expect(new Set(nextSteps).size).toBe(ERROR_CODES.length);
    const { body } = await read(api, '/problems');
    const listed = [...body.matchAll(/<li>(\d+) <a/g)].map(([, status]) => Number(status));
    expect(listed).toEqual(ERROR_CODES.map((code) => STATUS_OF[code]).toSorted((one, other) => one - other));
    expect((await read(api, '/problems/validation_error')).body).not.toContain('<dt>Code</dt>');
  });

  test('of an invalid credential says what a consumer does, whose code or session was refused', async ({ api }) => {
    const text = textOf((await read(api, '/problems/credential_invalid')).body);
    expect(text).toContain('A consumer signs in again, with another code.');
  });

  test('of a quota names the operator: most of what is counted cannot be removed', async ({ api }) => {
    expect(textOf((await read(api, '/problems/quota_exceeded')).body)).toContain('ask the operator of the service');
  });

  test('says that a repetition is safe only with a key, which not every operation takes', async ({ api }) => {
    const { detail } = ERROR_TEXT.temporarily_unavailable;
    const text = textOf((await read(api, '/problems/temporarily_unavailable')).body);
    expect(detail).toContain('that takes an Idempotency-Key');
    expect(text).toContain('An operation that takes no key may be carried out twice: read before you repeat it.');
  });

  test('is the page that the type of a problem links to', async ({ api }) => {
    const problem = (await get(api, '/v1/recipients')).json();
    const page = await get(api, problem.type);
    expect(page.statusCode).toBe(200);
    expect(textOf(page.body)).toContain(problem.title);
  });
});

test.for([
  ['/', 'Settlement service', 'page'],
  ['/docs/quickstart', 'Guides', 'page'],
  ['/docs/webhooks', 'Guides', 'true'],
  ['/docs', 'Reference', 'page'],
  ['/docs/reference/events', 'Reference', 'true'],
  ['/status', 'Status', 'page'],
  ['/docs/search?q=idempotency', undefined, undefined],
  ['/problems', undefined, undefined],
] as const)(
  'the navigation of %s marks the part of the site that it belongs to',
  async ([url, link, mark], { api }) => {
    const [, header = ''] = /<header>(.*?)<\/header>/s.exec((await read(api, url)).body) ?? [];
    const marked = [...header.matchAll(/aria-current="([a-z]+)">([^<]+)</g)].map(([, kind, text]) => [text, kind]);
    expect(marked).toEqual(link === undefined ? [] : [[link, mark]]);
  },
);

test('Markdown shows HTML as text, and no comment', () => {
  const render = createMarkdown({ link: (target) => target, picture: () => '' });
  const { html } = render('<!-- generated -->\n\nA <b onclick="x()">word</b>.\n\n<script>alert(1)</script>\n');
  expect(html).not.toMatch(/<b|<script|generated/);
  expect(textOf(html)).toContain('A <b onclick="x()">word</b>.');
});

describe('a guide', () => {
  test('is there as Markdown too, and /llms.txt leads to each', async ({ api }) => {
    const list = await get(api, '/llms.txt');
    expect(list.headers['content-type']).toBe('text/plain; charset=utf-8');
    for (const { path, title } of GUIDE_PLACES) {
      expect(list.body).toContain(`- [${title}](${path}.md)`);
      const markdown = await read(api, `${path}.md`);
      expect(markdown.headers['content-type']).toBe('text/markdown; charset=utf-8');
      expect(markdown.body).toContain(`# ${title}\n`);
    }
    const links = [...list.body.matchAll(/\]\(([^)]+)\)/g)].map(([, address]) => address ?? '');
    for (const address of links) expect(await statusOf(api, address), address).toBe(200);
  });

  test('tells outputs from commands, and leads to the next one and to each of its sections', async ({ api }) => {
    const { body } = await get(api, '/docs/quickstart');
    for (const kind of ['code"><figcaption>Shell', 'code output"><figcaption>Output']) expect(body).toContain(kind);
    expect(body).toContain('<a rel="next" href="/docs/settlement">');
    expect((await read(api, '/docs/settlement')).body).toContain('<a rel="prev" href="/docs/quickstart">');
    for (const [, id] of body.matchAll(/<h[23] id="([^"]+)"/g)) expect(body).toContain(`<li><a href="#${id}">`);
  });

  test.for(GUIDE_PLACES)(
    '$path keeps every line of its code, and names the column of every cell',
    async ({ path }, { api }) => {
      const [{ body }, { body: markdown }] = [await read(api, path), await read(api, `${path}.md`)];
      const shown = [...body.matchAll(/<pre[^>]*>(.*?)<\/pre>/gs)].map(([code]) => codeOf(code));
      expect(shown).toEqual([...markdown.matchAll(/^```\w*\n(.*?)^```/gms)].map(([, code]) => code));
      expect(body).not.toMatch(/<td>/);
    },
  );
});

describe('/docs', () => {
  test('lists every operation of the document, and each is described under its address', async ({ api }) => {
    const contents = (await read(api, '/docs')).body;
    const { paths } = (await read(api, '/openapi.json')).json();
    for (const [path, item] of Object.entries<Record<string, { summary: string; operationId: string }>>(paths)) {
      for (const [method, { summary, operationId }] of Object.entries(item)) {
        expect(textOf(contents)).toContain(`${method.toUpperCase()} ${path} ${summary}`);
        const [, page = ''] = new RegExp(`"(/docs/reference/[a-z-]+)#${operationId}"`).exec(contents) ?? [];
        expect((await read(api, page)).body).toContain(`<h2 id="${operationId}">`);
      }
    }
  });

  test('shows a body in the command of each operation that needs one', async ({ api }) => {
    const pages = await Promise.all(REFERENCE_PLACES.map(async ({ path }) => (await read(api, path)).body));
    const sections = pages.join('').split('<h2 id="');
    const { paths } = (await read(api, '/openapi.json')).json();
    const operations = Object.values<Json>(paths).flatMap((item) => Object.values<Json>(item));
    const needing = operations.filter(({ requestBody }) => requestBody?.required);
    expect(needing.length).toBeGreaterThan(20);
    const without = needing.filter(
      ({ operationId }) => !sections.some((one) => one.startsWith(`${operationId}"`) && textOf(one).includes(`-d '{`)),
    );
    expect(without.map(({ operationId }) => operationId)).toEqual([]);
  });

  test('shows a command with the method, the address and each header that an operation needs', async ({ api }) => {
    const pages = await Promise.all(REFERENCE_PLACES.map(async ({ path }) => (await read(api, path)).body));
    const sections = new Map(pages.flatMap((page) => page.split('<h2 id="').map((one) => [one.split('"')[0], one])));
    const { paths } = (await read(api, '/openapi.json')).json();
    for (const [path, item] of Object.entries<Json>(paths))
      for (const [method, operation] of Object.entries<Json>(item)) {
        const { operationId, security = [], parameters = [] } = operation;
        const command = /<pre><code>(.*?)<\/code><\/pre>/s.exec(sections.get(operationId) ?? '')?.[1] ?? '';
        const [first = '', ...lines] = codeOf(command).split(' \\\n');
        const name = method.toUpperCase();
        const address = path.replaceAll(/\{(\w+)\}/g, (_part, id) => `$${id.toUpperCase()}`);
        expect(first).toContain(`curl -sS ${name === 'GET' ? '' : `-X ${name} `}"$API${address}`);
        const schemes = security.flatMap((one: object) => Object.keys(one));
        const headers = parameters.filter((one: Json) => one.in === 'header').map((one: Json) => one.name);
        const needed = [
          ...(schemes.includes('ApiKey') ? ['-H "X-API-Key: $API_KEY"'] : []),
          ...(schemes.includes('ConsumerSession') ? ['-H "Authorization: Bearer $SESSION"'] : []),
          ...(headers.includes('Idempotency-Key') ? [expect.stringMatching(/^-H 'Idempotency-Key: .+'/)] : []),
          ...(headers.includes('X-Signature') ? ['-H "X-Signature: $X_SIGNATURE"'] : []),
          ...(headers.includes('Cardproc-Signature') ? ['-H "Cardproc-Signature: $CARDPROC_SIGNATURE"'] : []),
        ];
        expect(lines.map((line) => line.trim())).toEqual(expect.arrayContaining(needed));
      }
  });

  test('has commands that can be copied one after the other: each idempotency key is valid, and of one command', async ({
    api,
  }) => {
    const pages = await Promise.all(REFERENCE_PLACES.map(async ({ path }) => (await read(api, path)).body));
    const keys = pages.flatMap((page) => [...codeOf(page).matchAll(/-H 'Idempotency-Key: (.*?)'/g)]);
    const texts = keys.map(([, key = '']) => key);
    expect(texts.length).toBeGreaterThan(10);
    for (const key of texts) expect(IdempotencyKey.safeParse(key).error).toBeUndefined();
    expect(new Set(texts).size).toBe(texts.length);
  });

  test('says what a body must have, what an answer may lack, and what may be null', async ({ api }) => {
    const text = textOf((await read(api, '/docs/reference/settlement')).body);
    expect(text).toContain('recipient_id text, required');
    expect(text).toMatch(/reference text or null(?!, required)/);
    expect(text).toContain(', may be absent');
  });

  test('has an event under its name, with every field', async ({ api }) => {
    const events = textOf((await read(api, '/docs/reference/events')).body);
    for (const type of EVENT_TYPES) expect(events).toMatch(new RegExp(`${type} ?#`));
    expect(events).toContain('amount_refund_due text');
  });

  test('asks for no key: its only field is the search', async ({ api }) => {
    for (const { path } of REFERENCE_PLACES) {
      const { body } = await read(api, path);
      expect(body.match(/<(?:input|textarea|select)\b[^>]*>/g)).toEqual([expect.stringContaining('name="q"')]);
      expect(body.match(/<form [^>]*>/g)).toEqual(['<form action="/docs/search" role="search">']);
    }
  });

  test('says an exact length as one number, and ends an example with one full stop', async ({ api }) => {
    const textAt = async (path: string) => textOf((await read(api, path)).body);
    expect(await textAt('/docs/reference/caribbean-off-ramp')).toContain('The id of the certificate. 37 characters.');
    expect(await textAt('/docs/reference/verification')).not.toContain('..');
  });

  test('is sent compressed to who takes that, in less than 100 KB, with the same text', async ({ api }) => {
    for (const { path } of REFERENCE_PLACES) {
      const [plain, packed] = [await read(api, path), await get(api, path, { 'accept-encoding': 'gzip' })];
      expect(packed.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' });
      expect(packed.rawPayload.length).toBeLessThan(100_000);
      expect(gunzipSync(packed.rawPayload).toString()).toBe(plain.body);
    }
  });

  test.for([
    ['refund', '/docs/settlement#whose-money-is-due-back'],
    ['settlement.settled', '/docs/reference/events#settlement-settled'],
    ['quota_exceeded', '/problems/quota_exceeded'],
  ] as const)('a search for %s finds %s among the first five', async ([query, wanted], { api }) => {
    const { body } = await get(api, `/docs/search?q=${encodeURIComponent(query)}`);
    const found = [...body.matchAll(/<dd><a href="([^"]+)"/g)].map(([, address]) => address ?? '');
    expect(found.slice(0, 5)).toContainEqual(expect.stringMatching(new RegExp(`^${wanted}`)));
  });

  test('what is found is quoted without the marks of Markdown, and with those of code', async ({ api }) => {
    const shown = textOf((await get(api, '/docs/search?q=idempotency')).body);
    expect(shown).toContain('* subscribes to every event type');
    expect(shown).not.toMatch(/\*\*|`|## /);
  });

  test.for([
    { query: 'zzzzzz', said: '“zzzzzz”.' },
    { query: 'x'.repeat(5_000), said: `“${'x'.repeat(80)}”.` },
    { query: '<script>alert(1)</script>', said: '“<script>alert(1)</script>”.' },
  ])('a search for what does not exist says so, and shows no list: $said', async ({ query, said }, { api }) => {
    const { statusCode, body } = await get(api, `/docs/search?q=${encodeURIComponent(query)}`);
    expect(statusCode).toBe(200);
    expect(textOf(body)).toContain(`Nothing was found for ${said}`);
    expect(body).not.toMatch(/<dl|<script>/);
  });

  test('a search that could not read what there is does so at the next one', async () => {
    let reads = 0;
    const readDocument = () => {
      reads += 1;
      if (reads === 1) throw new Error('EMFILE');
      return { openapi: '3.1.0', info: { title: '', version: '' }, paths: {} };
    };
    const search = createSearch({ runtime: 'local-sandbox', assets: await loadAssets() }, readDocument);
    await expect(search('idempotency')).rejects.toThrow('EMFILE');
    expect(await search('idempotency')).toContain('Found for');
  });

  test('what is found is shown as text, and so is the query', async ({ api }) => {
    const text = textOf((await get(api, `/docs/search?q=${encodeURIComponent('<webhook-id>')}`)).body);
    expect(text).toContain('Found for “<webhook-id>”');
    expect(text).toContain('HMAC-SHA256 over <webhook-id>');
  });

  test('a search shows at most thirty places, the best one first', async ({ api }) => {
    const { body } = await get(api, '/docs/search?q=a');
    expect(body.match(/<dt>/g)).toHaveLength(30);
  });

  test.for([
    ['a b c d e f g h zzzzzz', 'Found for'],
    ['a a a a a a a a zzzzzz', 'Nothing was found for'],
  ] as const)('a search looks for the first eight different words: %s', async ([query, said], { api }) => {
    expect(textOf((await get(api, `/docs/search?q=${encodeURIComponent(query)}`)).body)).toContain(said);
  });

  test.for(['', '?q=', '?q=%20', '?q=a&q=b'])('a search without a query asks for one: %s', async (query, { api }) => {
    const { statusCode, body } = await get(api, `/docs/search${query}`);
    expect(statusCode).toBe(200);
    expect(textOf(body)).toContain('Enter a word.');
    expect(body).not.toMatch(/<dl|found/);
  });
});

describe('the examples of the reference', () => {
  const examples = new Map(Object.entries<Example>(JSON.parse(readFileSync(EXAMPLES_FILE, 'utf8'))));

  test('are there for every operation that a partner or a consumer calls, and for every event', async ({ api }) => {
    const { paths } = (await read(api, '/openapi.json')).json();
    const operations = Object.values<Record<string, { operationId: string; tags: string[] }>>(paths)
      .flatMap((item) => Object.values(item))
      .filter(({ tags, operationId }) => tags[0] !== 'Provider webhooks' && operationId !== 'getOpenApiDocument')
      .map(({ operationId }) => operationId);
    expect(new Set(examples.keys())).toEqual(new Set([...operations, ...EVENT_TYPES]));
  });

  test('are in the document too, for generators and other viewers', async ({ api }) => {
    const { paths, components } = (await read(api, '/openapi.json')).json();
    const { requestBody, responses } = paths['/v2/settle'].post;
    for (const [described, place, value] of [
      [requestBody, 'createSettlement.body', examples.get('createSettlement')?.body],
      [responses[202], 'createSettlement.answer', examples.get('createSettlement')?.answer],
    ]) {
      const reference = { recorded: { $ref: `#/components/examples/${place}` } };
      expect(described.content['application/json'].examples).toEqual(reference);
      expect(components.examples[place]).toEqual({ value });
    }
  });

  test('are answers that the document describes, and show no secret', async ({ api }) => {
    const { paths } = (await read(api, '/openapi.json')).json();
    const headers = { 'x-request-id': 'x', 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' };
    for (const [path, item] of Object.entries<Record<string, { operationId: string }>>(paths)) {
      for (const [method, { operationId }] of Object.entries(item)) {
        const { status, answer } = examples.get(operationId) ?? { status: 0 };
        if (status === 0) continue;
        const type = answer === undefined ? {} : { 'content-type': 'application/json; charset=utf-8' };
        const body = answer === undefined ? '' : JSON.stringify(answer);
        requireConformance(method.toUpperCase(), path, { statusCode: status, headers: { ...headers, ...type }, body });
      }
    }
    expect(JSON.stringify([...examples])).not.toMatch(/(?:sk_[a-z]+_|whsec_)\w{4}/);
  });
});

describe('an asset', () => {
  test('is cached without end under its digest, and compressed for clients that accept it', async ({ api }) => {
    for (const { name, bytes, type } of Object.values(await loadAssets())) {
      expect(name).toContain(createHash('sha256').update(bytes).digest('hex').slice(0, 16));
      const plain = await get(api, `/assets/${name}`, { 'accept-encoding': 'gzip;q=0' });
      expect(plain.headers).toMatchObject({
        'cache-control': 'public, max-age=31536000, immutable',
        'content-type': type,
        vary: 'Accept-Encoding',
      });
      expect(plain.headers['content-encoding']).toBeUndefined();
      expect(plain.rawPayload.equals(bytes)).toBe(true);
      const packed = await get(api, `/assets/${name}`, { 'accept-encoding': 'br, gzip' });
      expect(packed.headers['content-encoding']).toBe('gzip');
      expect(gunzipSync(packed.rawPayload).equals(bytes)).toBe(true);
    }
  });
});

describe('the form of a certificate', () => {
  test.for(['text/html', 'application/pdf'])(
    '401 without a key and 404 for an unknown one, as a problem, whatever is liked: %s',
    async (accept, { api, partner, certId }) => {
      const [none, unknown] = await Promise.all([
        get(api, `/v1/caribbean/certificate/${certId}`, { accept }),
        api.call(partner, 'GET', `/v1/caribbean/certificate/${NO_KEY}`, undefined, { accept }),
      ]);
      expect([none.statusCode, unknown.statusCode]).toEqual([401, 404]);
      for (const { headers } of [none, unknown]) expect(headers['content-type']).toMatch(/^application\/problem\+json/);
    },
  );

  test.for<[string, (content: string) => string]>([
    ['no certificate', () => '{}'],
    ['another certificate', (content) => content.replace('250.00', '950.00')],
  ])(
    '500 without its text when the stored bytes are not the certified ones: %s',
    async ([, change], { api, partner }) => {
      const other = await certified(api, partner);
      const path = `/v1/caribbean/certificate/${other.certId}`;
      const { body } = await api.call(partner, 'GET', path);
      const content = change(body);
      expect(content).not.toBe(body);
      await withoutTriggers(api.owner.pool, (client) =>
        client.query('UPDATE certificates SET content = $2 WHERE cert_id = $1', [other.certId, Buffer.from(content)]),
      );
      for (const accept of ['text/html', 'application/pdf']) {
        const response = await api.call(partner, 'GET', path, undefined, { accept });
        expect(response.statusCode).toBe(500);
        expect(response.json()).toMatchObject({ code: 'internal_error' });
        expect(response.body).not.toContain('digest');
      }
    },
  );

  test('is the same JSON bytes, unless the client prefers another form', async ({ certificate }) => {
    const usual = await certificate();
    expect(usual.headers['content-type']).toBe('application/json');
    const { etag, 'x-certificate-signature': signature } = usual.headers;
    for (const accept of ['*/*', 'application/json', 'image/png', '', 'text/html;q=0', 'nonsense']) {
      const response = await certificate(accept);
      expect(response.statusCode, accept).toBe(200);
      expect(response.rawPayload.equals(usual.rawPayload)).toBe(true);
      const sent = {
        'content-type': 'application/json',
        vary: 'Accept, X-API-Key',
        etag,
        'x-certificate-signature': signature,
      };
      expect(response.headers, accept).toMatchObject(sent);
    }
  });

  test.each([
    ['text/html, application/json', 'application/json'],
    ['application/*;q=0.9, text/html;q=0.5', 'application/json'],
    ['application/pdf', 'application/pdf'],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 'text/html'],
    ['application/json;q=0.4, application/pdf;q=0.5', 'application/pdf'],
    ['text/*, application/json;q=0.9', 'text/html'],
    ['*/*, application/json;q=0', 'text/html'],
    ['TEXT/HTML; charset=utf-8; Q=0.7, application/json;q=0.6', 'text/html'],
    ['application/pdf;q=1.5, text/html;q=0.001', 'text/html'],
  ])('Accept "%s" gives %s', (accept, expected) => {
    expect(preferredType(accept, ['application/json', 'text/html', 'application/pdf'])).toBe(expected);
  });

  test('has a tag for each form, 304 only for that tag, and is private', async ({ certificate }) => {
    const forms = await Promise.all([certificate(), certificate('text/html'), certificate('application/pdf')]);
    const tags = forms.map(({ headers }) => String(headers.etag));
    expect(new Set(tags).size).toBe(3);
    for (const [index, form] of forms.entries()) {
      expect(form.headers['cache-control']).toBe('private, max-age=31536000, immutable');
      expect(form.headers.vary).toBe('Accept, X-API-Key');
      expect(form.headers.etag).toBe(`"${createHash('sha256').update(form.rawPayload).digest('hex')}"`);
      const accept = ['application/json', 'text/html', 'application/pdf'][index];
      for (const tag of tags)
        expect((await certificate(accept, { 'if-none-match': tag })).statusCode).toBe(tag === tags[index] ? 304 : 200);
    }
  });

  test('shows SIMULATION and UNANCHORED, id, digest and every fact on a self-contained page', async ({
    certId,
    certificate,
  }) => {
    const response = await certificate('text/html');
    const json = (await certificate()).json();
    const { amount, currency } = json.amounts.destination;
    const day = json.timeline.at(-1).at.slice(0, 10);
    const title = `^[^:]*Evidence certificate ${amount} ${currency} to [A-Z][A-Za-z ]+, on ${day}`;
    expect(textOf(response.body)).toMatch(new RegExp(title));
    const text = textOf(response.body);
    const sha256 = String((await certificate()).headers.etag).slice(1, -1);
    const { settlement_id: settlementId, parties, amounts } = json;
    const ids = [certId, sha256, settlementId, parties.recipient_id];
    const { fees, rate } = json;
    const facts = [
      `Payee (SHA-256) ${parties.payee_sha256}`,
      `Amount sent ${amounts.source.amount} ${amounts.source.currency}`,
      `Amount paid out ${amount} ${currency}`,
      `Rate ${rate.fx_rate} (`,
      `Input fee ${fees.input_fee} ${fees.currency}`,
      `Platform fee ${fees.platform_fee} ${fees.currency}`,
      `Fees in total ${fees.total_fees} ${fees.currency}`,
      `Payment method ${json.payment_method.replaceAll('_', ' ')}`,
      `Payout rail ${json.payout_rail.replaceAll('_', ' ')}`,
      `Environment ${json.environment}`,
    ];
    for (const said of ['SIMULATION', 'UNANCHORED', ...ids, ...facts, 'static fixture']) expect(text).toContain(said);
    expect(response.headers['x-certificate-signature']).toBeUndefined();
    for (const posting of json.postings) expect(text).toContain(`${posting.amount} ${posting.currency}`);
    for (const fact of json.evidence) expect(text).toContain(fact.sha256);
    for (const { at, evidence_id: id } of json.timeline) expect(text).toContain(`${at} ${id ?? 'none'}`);
    const style = response.body.match(/<style>(.*?)<\/style>/s)?.[1] ?? '';
    expect(response.headers['content-security-policy']).toContain(
      `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    );
    expect(response.headers['content-disposition']).toBe(`inline; filename="${certId}.html"`);
    expect(loadedBy(response.body)).toEqual([]);
    expect(response.body).not.toMatch(/<script|https?:\/\/(?!www\.w3\.org)/);
  });

  test('shows the same in print, on one page, with the same bytes every time', async ({ certId, certificate }) => {
    const [one, other] = [await certificate('application/pdf'), await certificate('application/pdf')];
    expect(one.rawPayload.equals(other.rawPayload)).toBe(true);
    expect(one.headers['x-certificate-signature']).toBeUndefined();
    expect(one.headers['content-disposition']).toBe(`attachment; filename="${certId}.pdf"`);
    const json = (await certificate()).json();
    const text = printedText(one.rawPayload);
    for (const said of ['SIMULATION', 'UNANCHORED', certId, json.settlement_id, json.amounts.destination.amount])
      expect(text).toContain(said);
    const pages = one.rawPayload.toString('latin1').match(/\/Type \/Page\b/g)?.length ?? 0;
    expect(pages).toBe(1);
    expect(text.match(/SIMULATION · UNANCHORED · CERT-[0-9A-F]{32} · page 1 of 1/g)).toHaveLength(1);
    expect(one.rawPayload.toString('latin1')).not.toMatch(/https?:|\/URI/);
  });

  test('continues a long history on further pages, each with id and page number', async ({ certId, certificate }) => {
    const content = (await certificate()).rawPayload;
    const view = certificateView({ certId, content }, { payeeName: 'Marcia Brown', reference: null });
    const rows = Array.from({ length: 150 }, (_, line) => [`line ${line} of it`]);
    const pdf = await certificatePdf({ ...view, tables: [{ title: 'Long', columns: [['Line', 1]], rows }] });
    const text = printedText(pdf);
    const pages = pdf.toString('latin1').match(/\/Type \/Page\b/g)?.length ?? 0;
    expect(pages).toBeGreaterThan(2);
    expect(text.match(/SIMULATION · UNANCHORED · CERT-[0-9A-F]{32} · page \d of \d/g)).toHaveLength(pages);
    for (let line = 0; line < 150; line += 1) expect(text).toContain(`line ${line} of it`);
  });

  test('has a QR code with id and digest, and without an address', async ({ certId, certificate }) => {
    const sha256 = String((await certificate()).headers.etag).slice(1, -1);
    const { size, dark } = qrCode(`${certId} sha256:${sha256}`);
    const html = (await certificate('text/html')).body;
    const drawn = [...(html.match(/<path d="([^"]*)"/)?.[1] ?? '').matchAll(/M(\d+) (\d+)h1v1h-1z/g)].map(
      ([, x, y]) => [Number(x) - 4, Number(y) - 4],
    );
    expect(drawn).toEqual(dark);
    expect(html).toContain(`viewBox="0 0 ${size + 8} ${size + 8}"`);
  });

  // jsQR read this code. After a change, have a scanner read it again.
  test('has the QR code that a scanner reads', () => {
    const code = qrCode(`CERT-${'0123456789ABCDEF'.repeat(2)} sha256:${'0123456789abcdef'.repeat(4)}`);
    const digest = createHash('sha256').update(JSON.stringify(code)).digest('hex');
    expect(digest).toBe('15b12465b30c54555b7a534a78d8cee3370eefbe7e56b2a61a945d039206207e');
  });

  test('escapes the texts of a certificate', () => {
    const hostile = `"><script>alert('x')</script>`;
    const html = certificateHtml(
      {
        certId: hostile,
        sha256Hex: hostile,
        settledAt: new Date(0),
        warnings: [[hostile, hostile]],
        summary: { amount: hostile, payee: hostile, date: hostile },
        facts: [[hostile, hostile]],
        tables: [{ title: hostile, columns: [[hostile, 1]], rows: [[hostile]] }],
        qrText: hostile,
        howToVerify: hostile,
      },
      '',
    );
    expect(html).not.toContain('<script');
    expect(textOf(html)).toContain(hostile);
  });
});

/** The text of an uncompressed PDF: hexadecimal strings, split where letters are moved closer. */
function printedText(pdf: Buffer): string {
  const lines = [...pdf.toString('latin1').matchAll(/\[([^\]]*)\] TJ/g)].map(([, pieces = '']) =>
    [...pieces.matchAll(/<([0-9a-f]*)>/g)].map(([, hex = '']) => Buffer.from(hex, 'hex').toString('latin1')).join(''),
  );
  return lines.join('\n');
}
