/** A certificate as one self-contained page with its styles, because it is saved and opened elsewhere. */
import { createHash } from 'node:crypto';
import { html } from 'ghtml';
import { DENY_OTHERS } from './answer.ts';
import { allFacts, type CertificateTable, type CertificateView } from './certificate.ts';
import { breakable } from './code.ts';
import { type QrCode, QUIET_ZONE, qrCode } from './qr-code.ts';

/** @param style the stylesheet of all pages */
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
<main class="certificate">
<h1>Evidence certificate</h1>
<p class="amount">${view.summary.amount}</p>
<p class="lead">to ${view.summary.payee}, on ${view.summary.date}</p>
!${view.warnings.map(([word, meaning]) => html`<p class="posture" role="note">${word}: ${meaning}</p>`)}
<dl class="facts">
!${allFacts(view).map(([name, value]) => html`<div><dt>${name}</dt><dd!${digest(value)}>${value}</dd></div>`)}
</dl>
!${view.tables.map(table)}
<h2>Verification</h2>
<p>!${breakable(view.howToVerify)}</p>
<figure>
!${svg(qrCode(view.qrText), `QR code of ${view.qrText}`)}
<figcaption>The id and the digest of this certificate. The code holds no address.</figcaption>
</figure>
</main>
</body>
</html>
`;

/** A Content-Security-Policy that allows exactly this style and nothing else. */
export function certificatePolicy(style: string): string {
  const digest = createHash('sha256').update(style).digest('base64');
  return `${DENY_OTHERS}; style-src 'sha256-${digest}'`;
}

/** Ids and digests may break anywhere: they have no words. */
const digest = (value: string): string => (/[\w:.-]{30,}/.test(value) ? ' class="digest"' : '');

const table = ({ title, columns, rows }: CertificateTable): string =>
  html`<table>
<caption>${title}</caption>
<thead><tr>!${columns.map(([column]) => html`<th scope="col">${column}</th>`)}</tr></thead>
<tbody>
!${rows.map(([first = '', ...others]) => html`<tr><th scope="row">${first}</th>!${others.map(cellOf(columns))}</tr>`)}
</tbody>
</table>`;

/** On a phone a cell says its column. */
const cellOf =
  (columns: CertificateTable['columns']) =>
  (value: string, index: number): string =>
    html`<td data-column="${columns[index + 1]?.[0] ?? ''}"!${digest(value)}>${value}</td>`;

/** The code is always black on white, so that it can be scanned from a dark page too. */
function svg({ size, dark }: QrCode, label: string): string {
  const side = size + 2 * QUIET_ZONE;
  const squares = dark.map(([column, row]) => `M${column + QUIET_ZONE} ${row + QUIET_ZONE}h1v1h-1z`).join('');
  const image = html`role="img" aria-label="${label}" width="180" height="180" viewBox="0 0 ${side} ${side}"`;
  const background = html`<rect width="${side}" height="${side}" fill="#fff"/>`;
  return html`<svg !${image} shape-rendering="crispEdges">!${background}<path d="${squares}" fill="#000"/></svg>`;
}
