/** A certificate as one self-contained page: it is saved and opened far from here, so that its styles are within it. */
import { createHash } from 'node:crypto';
import { html } from 'ghtml';
import type { CertificateTable, CertificateView } from './certificate.ts';
import { type QrCode, QUIET_ZONE, qrCode } from './qr-code.ts';

/** @param style the common stylesheet */
export const certificateHtml = (view: CertificateView, style: string): string =>
  html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Evidence certificate ${view.certId}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<style>!${style}</style>
</head>
<body>
<main>
<h1>Evidence certificate</h1>
!${view.warnings.map(([word, meaning]) => html`<p class="posture" role="note">${word}: ${meaning}</p>`)}
<dl class="facts">
!${[['Certificate', view.certId] as const, ['SHA-256', view.sha256Hex] as const, ...view.facts].map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
</dl>
!${view.tables.map(table)}
<h2>Verification</h2>
<p>${view.howToVerify}</p>
<figure>
!${svg(qrCode(view.qrText), `QR code of ${view.qrText}`)}
<figcaption>The id and the digest of this certificate. The code holds no address.</figcaption>
</figure>
</main>
</body>
</html>
`;

/** What lets a browser use exactly this style and nothing else. */
export const certificatePolicy = (style: string): string =>
  `default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`;

const table = ({ title, columns, rows }: CertificateTable): string =>
  html`<table>
<caption>${title}</caption>
<thead><tr>!${columns.map(([column]) => html`<th scope="col">${column}</th>`)}</tr></thead>
<tbody>
!${rows.map((row) => html`<tr>!${row.map((cell) => html`<td>${cell}</td>`)}</tr>`)}
</tbody>
</table>`;

/** On white whatever the colours of the page are, so that it can be read from a dark screen too. */
function svg({ size, dark }: QrCode, label: string): string {
  const side = size + 2 * QUIET_ZONE;
  const squares = dark.map(([column, row]) => `M${column + QUIET_ZONE} ${row + QUIET_ZONE}h1v1h-1z`).join('');
  return html`<svg role="img" aria-label="${label}" width="180" height="180" viewBox="0 0 ${side} ${side}" shape-rendering="crispEdges"><rect width="${side}" height="${side}" fill="#fff"/><path d="${squares}" fill="#000"/></svg>`;
}
