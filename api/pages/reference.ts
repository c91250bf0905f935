/**
 * The API reference (contract §15): drawn in the browser from `/openapi.json` by one script that we serve. It asks
 * no key and sends no request, since keys never enter a browser; where scripts are off it is a list.
 */
import { html } from 'ghtml';
import type { Operation } from '../plugins/operation-list.ts';
import { addressOf } from './asset.ts';
import { type Frame, head, SERVICE_NAME, stylesheet } from './layout.ts';

/** What the reference's script is told; everything that would call out, try out or remember is off. */
const CONFIGURATION = {
  theme: 'default',
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  hideTestRequestButton: true,
  persistAuth: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: 'never',
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
  documentDownloadType: 'none',
  // The one field that would take a key.
  customCss: '.scalar-reference-intro-auth { display: none !important }',
} as const;

/** @param operations as registered; what the document hides is left out */
export const referencePage = (frame: Frame, operations: readonly Operation[]): string =>
  html`<!doctype html>
<html lang="en">
<head>
!${head(frame.assets, 'API reference')}
<noscript>!${stylesheet(frame.assets)}</noscript>
</head>
<body>
<noscript>
<main>
<h1>${SERVICE_NAME}: API reference</h1>
<p>The full reference needs a script, which is served from here; its document is <a href="/openapi.json">/openapi.json</a>. These are the operations:</p>
<dl class="places">
!${operations
    .filter(({ schema }) => !schema.hide)
    .map(
      ({ method, path, schema }) => html`<div><dt><code>${method} ${path}</code></dt><dd>${schema.summary}</dd></div>`,
    )}
</dl>
<p><a href="/">${SERVICE_NAME}</a></p>
</main>
</noscript>
<script id="api-reference" data-url="/openapi.json" data-configuration="${JSON.stringify(CONFIGURATION)}"></script>
<script src="${addressOf(frame.assets.reference)}"></script>
</body>
</html>
`;
