/**
 * The API reference (contract §15). One script, which this service serves, renders `/openapi.json` in the browser. The
 * page never asks for a key and calls no operation. Without scripts it is a list of the operations.
 */
import { html } from 'ghtml';
import type { Operation } from '../plugins/operation-list.ts';
import { addressOf } from './asset.ts';
import { type Frame, SERVICE_NAME } from './layout.ts';

/** The settings of the script: no telemetry, no test requests, no other hosts, and nothing stored. */
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
  // Hides the only field for a key.
  customCss: '.scalar-reference-intro-auth { display: none !important }',
} as const;

/** @param operations as registered; those that the OpenAPI document hides are left out */
export const referencePage = (frame: Frame, operations: readonly Operation[]): string =>
  html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>API reference · ${SERVICE_NAME}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" type="image/svg+xml" href="${addressOf(frame.assets.icon)}">
<noscript><link rel="stylesheet" href="${addressOf(frame.assets.style)}"></noscript>
</head>
<body>
<noscript>
<main>
<h1>${SERVICE_NAME}: API reference</h1>
<p>The full reference needs a script, which this service serves. The document is
<a href="/openapi.json">/openapi.json</a>. These are the operations:</p>
<dl class="places">
!${operations
    .filter(({ schema }) => !schema.hide)
    .map(
      ({ method, path, schema }) => html`<div><dt><code>${method} ${path}</code></dt><dd>${schema.summary}</dd></div>`,
    )}
</dl>
<p><a href="/docs/quickstart">Guides</a> · <a href="/">${SERVICE_NAME}</a></p>
</main>
</noscript>
<script id="api-reference" data-url="/openapi.json" data-configuration="${JSON.stringify(CONFIGURATION)}"></script>
<script src="${addressOf(frame.assets.reference)}"></script>
</body>
</html>
`;
