/** The page that a problem's `type` links to (contract §2): what the code means, and what to do next. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { html } from 'ghtml';
import { ERROR_CODES, ERROR_TEXT, type ErrorCode } from '../../domain/error.ts';
import { problemOf, STATUS_OF } from '../http/error-handler.ts';
import { prefersPage, sendPage } from './answer.ts';
import { codeBlock } from './code.ts';
import { current, document, type Frame } from './layout.ts';
import { prose } from './schema.ts';

const NEXT_STEP: Record<ErrorCode, string> = {
  request_malformed: 'Use an HTTP client. Check for a proxy that changes requests: one `Host` header, one length.',
  headers_too_large: 'Send a shorter address and fewer or shorter headers. The limit is 16 KiB for all of them.',
  credential_missing:
    'Send your API key in one `X-API-Key` header. Consumer operations need a session as a bearer token instead. `POST ' +
    '/v1/orgs` creates an organization with its first key.',
  credential_ambiguous:
    'Send one header with one key. Check whether a proxy or a client adds a second key or joins two with a comma.',
  credential_invalid:
    'Check that the key is the one that was shown when it was created, and that it belongs to the environment that ' +
    'you call. If the key is lost, create another one. A consumer signs in again, with another code.',
  scope_insufficient: 'Repeat the request with a key that has the scope in `required_scope`.',
  organization_mismatch: 'Remove `org_id` from the body: the key already identifies the organization.',
  organization_suspended:
    'Ask the operator of the service why. What you have started continues, and its events are still sent to you.',
  not_found: 'Check the id, and that your organization created the object in this environment.',
  method_not_allowed: 'Use a method that the `Allow` header lists.',
  idempotency_key_reused:
    'To repeat the first command, send exactly the same bytes; `mismatch` names the fields that differ. For another ' +
    'command use a new key.',
  state_conflict:
    'Read the object; `current_state` is its state. The same request will be refused again while that state lasts.',
  last_full_key:
    'Create another key with scope `full`, move your systems to it, then revoke this one. If `descendants=true` would ' +
    'revoke your own key too, a new key does not help, since it is a descendant as well: revoke the others one by one.',
  provider_event_conflict:
    'Compare the event with the one that was received first. A provider must give each event its own id.',
  request_timeout: 'Repeat the request over a faster connection. Repeat a command with the same `Idempotency-Key`.',
  payload_too_large: 'Send a smaller body. The limit is 64 KiB; it is 256 KiB for the event of a provider.',
  unsupported_media_type: 'Send `Content-Type: application/json`, in UTF-8 and without content encoding.',
  rate_limited:
    'Wait as many seconds as `Retry-After` says, then send fewer requests. `RateLimit` shows how many are left.',
  quota_exceeded:
    'Wait as many seconds as `Retry-After` says, if the answer has it. Otherwise revoke a key or delete a subscription ' +
    'that you do not need; for more of anything else ask the operator of the service.',
  remote_environment: 'Use bank linking in the local sandbox. Repeating the request here does not help.',
  launch_gates_closed:
    'You cannot open a gate: `gates` lists the closed ones, and the status page shows them all. Use the local sandbox ' +
    'until they are open.',
  local_sandbox_only: 'Call it in the local sandbox. Repeating the request here does not help.',
  provider_not_configured: 'You cannot change this. Use the local sandbox, where the provider is simulated.',
  temporarily_unavailable:
    'Wait as many seconds as `Retry-After` says, and repeat the request with the same `Idempotency-Key`. The command is ' +
    'carried out at most once, even if the first request succeeded. An operation that takes no key may be carried ' +
    'out twice: read before you repeat it.',
  signature_invalid: 'Sign the exact bytes that you send, with the secret of this environment and the current time.',
  internal_error:
    'Repeat the request, a command with the same `Idempotency-Key`. If it fails again, report the `request_id`.',
};

/** An invalid request is no problem document. Its page is among theirs. */
const INVALID = 'validation_error';

/** The page of a code, or of an invalid request; undefined for an unknown code. */
export function problemPage(frame: Frame, code: string): string | undefined {
  if (code === INVALID) return refusalPage(frame, INVALID_REQUEST);
  const known = ERROR_CODES.find((candidate) => candidate === code);
  if (known === undefined) return undefined;
  const { title, detail } = ERROR_TEXT[known];
  return refusalPage(frame, {
    ...{ code: known, title, lead: detail, status: STATUS_OF[known], next: NEXT_STEP[known] },
    answer: 'The content type is `application/problem+json`. Programs must use `code` only: the texts may change.',
    sample: problemOf(known, '/v2/settle', '0193a5c0-7f3e-7c11-9a51-3d1f0a6be001'),
  });
}

/** `lead`, `next` and `answer` in Markdown. */
type Refusal = {
  readonly code: ErrorCode | typeof INVALID;
  readonly title: string;
  readonly lead: string;
  readonly status: number;
  readonly next: string;
  readonly answer: string;
  readonly sample: unknown;
};

const refusalPage = (frame: Frame, { code, title, lead, status, next, answer, sample: shown }: Refusal): string =>
  document(frame, {
    title,
    path: `/problems/${code}`,
    main: html`<h1>${title}</h1>
<p class="lead">!${prose(lead)}</p>
<dl class="facts">
<div><dt>Status</dt><dd>${status}</dd></div>
!${code === INVALID ? '' : html`<div><dt>Code</dt><dd><code>${code}</code></dd></div>`}
</dl>
<h2>What to do next</h2>
<p>!${prose(next)}</p>
<h2>In an answer</h2>
<p>!${prose(answer)}</p>
!${codeBlock({ text: JSON.stringify(shown, null, 2), label: 'JSON' })}
<h2>All problems</h2>
!${list(code)}`,
  });

const INVALID_REQUEST: Refusal = {
  code: INVALID,
  title: 'Invalid request',
  lead: 'The answer lists all faults at once, up to 100, and repeats none of your values.',
  status: 422,
  next:
    'Correct every field that `loc` names, by its `msg`, and send the request again. Nothing was written, and an ' +
    '`Idempotency-Key` is still free.',
  answer: 'The content type is `application/json`. Programs may use `loc` and `type`.',
  sample: {
    detail: [
      { loc: ['body', 'amount'], msg: 'Field required', type: 'missing' },
      { loc: ['body', 'note'], msg: 'Extra inputs are not permitted', type: 'extra_forbidden' },
    ],
  },
};

/** All codes. */
export const problemsPage = (frame: Frame): string =>
  document(frame, {
    title: 'Problems',
    path: '/problems',
    main: html`<h1>Problems</h1>
<p class="lead">A refusal has a <code>code</code>. Each code has a page that says what it means and what to do next.</p>
!${list()}
<p><a href="/docs/errors">The guide of errors</a> shows how to read a refusal.</p>`,
  });

/** For people, where programs get the problem `not_found`. */
export function createNotFoundPage(frame: Frame) {
  const page = document(frame, {
    title: 'Not found',
    path: '',
    main: html`<h1>Not found</h1>
<p class="lead">There is no page at this address.</p>
<p>What there is: <a href="/">the overview</a>, <a href="/docs/quickstart">the guides</a>, <a href="/docs">the API
reference</a>, <a href="/problems">the problems</a> and <a href="/status">the status</a>.</p>`,
  });
  return (request: FastifyRequest, reply: FastifyReply): FastifyReply | undefined =>
    prefersPage(request) ? sendPage(reply.code(STATUS_OF.not_found).header('Vary', 'Accept'), page) : undefined;
}

const list = (known?: string): string => html`<ul class="codes">
!${byStatus.map((other) => link(other, other === known))}
</ul>
<p>An <a href="/problems/${INVALID}">invalid request</a> is answered by 422 in another form.</p>`;

const link = (code: ErrorCode, isCurrent: boolean): string =>
  html`<li>${STATUS_OF[code]} <a href="/problems/${code}"!${current(isCurrent)}><code>${code}</code></a></li>`;

const byStatus: readonly ErrorCode[] = ERROR_CODES.toSorted((a, b) => STATUS_OF[a] - STATUS_OF[b]);
