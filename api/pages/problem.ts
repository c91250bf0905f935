/** What a problem's `type` leads to (contract §2): what the code means, and what its reader does next. */
import { html } from 'ghtml';
import { ERROR_CODES, ERROR_TEXT, type ErrorCode } from '../../domain/error.ts';
import { STATUS_OF } from '../http/error-handler.ts';
import { document, type Frame } from './layout.ts';

const NEXT_STEP: Record<ErrorCode, string> = {
  credential_missing:
    'Send your API key in one X-API-Key header; consumer operations take a session as a bearer token. POST /v1/orgs gives a first key.',
  credential_ambiguous:
    'Send one header with one key. Look for a proxy or client that adds a second one or joins two with a comma.',
  credential_invalid:
    'Compare the key with the one that was shown once, and its environment with the address that you call. If it is lost, create another one.',
  scope_insufficient: 'Repeat the request with a key of the scope that required_scope names.',
  organization_mismatch: 'Leave org_id out of the body: the key already says which organization acts.',
  not_found: 'Check the id and that it was made by your organization, in this environment.',
  method_not_allowed: 'Use one of the methods in the Allow header.',
  idempotency_key_reused:
    'To repeat the first command, send exactly its bytes again; mismatch names what differs. For another command make a new key.',
  state_conflict:
    'Read the object, whose state current_state names, and decide anew. The same request will be refused again.',
  last_full_key: 'Create another key with scope full, change your systems to it, then revoke this one.',
  provider_event_conflict:
    'Compare the event with the one that was received first. A provider gives each event an id of its own.',
  request_timeout: 'Repeat the request over a faster connection; a command with the same Idempotency-Key.',
  payload_too_large: 'Send a smaller body; 64 KiB is the most.',
  unsupported_media_type: 'Send Content-Type: application/json, in UTF-8 and without content encoding.',
  rate_limited: 'Wait for the seconds that Retry-After tells, then go on more slowly; RateLimit tells what is left.',
  remote_environment: 'Use bank linking in the local sandbox. Repeating the request here changes nothing.',
  launch_gates_closed:
    'Nothing on your side opens it: gates names those that are closed, and the status page tells how they stand. Use the local sandbox meanwhile.',
  local_sandbox_only: 'Call it in the local sandbox. Repeating the request here changes nothing.',
  provider_not_configured: 'Nothing on your side opens it. Use the local sandbox, whose provider is a simulation.',
  temporarily_unavailable:
    'Wait for the seconds that Retry-After tells and repeat the request with the same Idempotency-Key: it happens once, whatever became of the first.',
  signature_invalid: 'Sign the exact bytes that are sent, with the secret of this environment, and a timestamp of now.',
  internal_error: 'Repeat a command with the same Idempotency-Key. If it fails again, report the request_id.',
};

/** The code's page; undefined where it is none. */
export function problemPage(frame: Frame, code: string): string | undefined {
  const known = ERROR_CODES.find((candidate) => candidate === code);
  if (known === undefined) return undefined;
  const { title, detail } = ERROR_TEXT[known];
  return document(frame, {
    title,
    path: `/problems/${known}`,
    main: html`<h1>${title}</h1>
<p class="lead">${detail}</p>
<dl class="facts">
<div><dt>Status</dt><dd>${STATUS_OF[known]}</dd></div>
<div><dt>Code</dt><dd><code>${known}</code></dd></div>
</dl>
<h2>What to do next</h2>
<p>${NEXT_STEP[known]}</p>
<h2>In an answer</h2>
<p>It comes as <code>application/problem+json</code>. Branch on <code>code</code>: it is the contract, the texts are not.</p>
<pre><code>${JSON.stringify(sample(known), null, 2)}</code></pre>
<h2>Every problem</h2>
<ul class="codes">
!${byStatus.map((other) => html`<li>${STATUS_OF[other]} <a href="/problems/${other}"!${other === known ? ' aria-current="page"' : ''}><code>${other}</code></a></li>`)}
</ul>
<p>A request that is malformed in itself is answered by 422 in another form: <code>{"detail": [{"loc", "msg", "type"}]}</code> lists every fault at once.</p>`,
  });
}

const byStatus: readonly ErrorCode[] = ERROR_CODES.toSorted((a, b) => STATUS_OF[a] - STATUS_OF[b]);

const sample = (code: ErrorCode) => ({
  type: `/problems/${code}`,
  title: ERROR_TEXT[code].title,
  status: STATUS_OF[code],
  detail: ERROR_TEXT[code].detail,
  instance: '/v2/settle',
  code,
  request_id: '0193a5c0-7f3e-7c11-9a51-3d1f0a6be001',
});
