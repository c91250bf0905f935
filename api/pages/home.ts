/** The first page: the posture, the first request to try, and links to everything else. */
import { html } from 'ghtml';
import { codeBlock, inlineCode } from './code.ts';
import { firstRequest } from './first-request.ts';
import { document, type Frame, SERVICE_NAME } from './layout.ts';
import { SETTLEMENT_WAY, settlementPicture } from './settlement-picture.ts';

const PLACES = [
  { path: '/docs/quickstart', text: 'Guides', what: 'from the first request to reconciliation, with examples to run' },
  { path: '/docs', text: 'API reference', what: 'every operation, field and error, each with a curl command to copy' },
  { path: '/status', text: 'Status', what: 'what works in which environment, and the launch gates' },
  { path: '/openapi.json', text: 'OpenAPI document', what: 'version 3.1, for generated clients' },
  {
    path: '/v2/capabilities',
    text: 'Capability catalog',
    what: 'the public entries of the status page as JSON; all with a key',
  },
  {
    path: '/.well-known/jwks.json',
    text: 'Certificate keys',
    what: 'the public keys that verify evidence certificates',
  },
  { path: '/health/ready', text: 'Readiness', what: 'whether the service takes requests' },
] as const;

/** @param publicBaseUrl without a trailing slash */
export const homePage = (frame: Frame, publicBaseUrl: string): string =>
  document(frame, {
    title: SERVICE_NAME,
    path: '/',
    main: html`<h1>${SERVICE_NAME}</h1>
<p class="lead">Settlement and payout API for Caribbean corridors. A partner starts a settlement; the service collects
the money, pays it out and issues an evidence certificate.</p>
<p>No corridor is live. Settlements are simulations and exist only in the local sandbox. Elsewhere every value operation
answers 503 before anything is collected. No estimate is an executable quote, and no certificate is anchored.</p>
<h2>First request</h2>
<p>It needs no key. It creates an organization and shows its first key; no other answer does. Send that key as
!${inlineCode('X-API-Key')} from your server.</p>
!${codeBlock({ text: firstRequest(publicBaseUrl, ' \\\n  '), label: 'Shell' })}
<p><a class="next" href="/docs/quickstart">Continue: quickstart, 5 minutes</a></p>
<h2>The way of a settlement</h2>
!${settlementPicture({ label: SETTLEMENT_WAY })}
<p><a href="/docs/settlement">A settlement's life</a> says what happens in each state, and what you can do.</p>
<h2>Where things are</h2>
<dl class="places">
!${PLACES.map(({ path, text, what }) => html`<div><dt><a href="${path}">${text}</a></dt><dd>${what}</dd></div>`)}
</dl>`,
  });
