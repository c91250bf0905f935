/**
 * A certificate for print. The same certificate always gives the same bytes: the standard fonts, no compression, and no
 * time but that of the certificate.
 */
import { once } from 'node:events';
import PDFDocument from 'pdfkit';
import { allFacts, type CertificateTable, type CertificateView } from './certificate.ts';
import { QUIET_ZONE, qrCode } from './qr-code.ts';

type Pdf = InstanceType<typeof PDFDocument>;

/** Points; there are 72 to an inch. */
const MARGIN = 42;
const FACT_LABEL_WIDTH = 110;
const ROW_GAP = 2;
const COLUMN_GAP = 10;
const QR_SIDE = 90;
const QR_GAP = 12;
const HEADING_HEIGHT = 18;
const FOOTER_FROM_BOTTOM = 30;

const INK = '#17212b';
const QUIET = '#4d5b68';
const CAUTION = '#5c3d00';

export async function certificatePdf(view: CertificateView): Promise<Buffer> {
  const pdf = new PDFDocument({
    size: 'A4',
    margin: MARGIN,
    compress: false,
    bufferPages: true,
    lang: 'en',
    displayTitle: true,
    info: {
      Title: `Evidence certificate ${view.certId}`,
      Subject: view.warnings.map(([word]) => word).join(', '),
      CreationDate: view.settledAt,
      ModDate: view.settledAt,
    },
  });
  const chunks: Buffer[] = [];
  pdf.on('data', (chunk: Buffer) => chunks.push(chunk));
  const ended = once(pdf, 'end');
  draw(pdf, view);
  pdf.end();
  await ended;
  return Buffer.concat(chunks);
}

/** A certificate with a usual history is one page. */
function draw(pdf: Pdf, view: CertificateView): void {
  squares(pdf, view.qrText, MARGIN + innerWidth(pdf) - QR_SIDE, MARGIN);
  const beside = { width: innerWidth(pdf) - QR_SIDE - QR_GAP };
  pdf.font('Helvetica-Bold').fontSize(20).fillColor(INK).text('Evidence certificate', beside).moveDown(0.4);
  pdf.fontSize(17).text(view.summary.amount, beside);
  pdf
    .font('Helvetica')
    .fontSize(12)
    .text(printable(`to ${view.summary.payee}, on ${view.summary.date}`), beside)
    .moveDown(0.6);
  for (const [word, meaning] of view.warnings) warning(pdf, word, meaning, beside);
  pdf.y = Math.max(pdf.y, MARGIN + QR_SIDE);
  pdf.moveDown(0.5);
  for (const [name, value] of allFacts(view)) fact(pdf, name, value);
  for (const shown of view.tables) table(pdf, shown);
  verification(pdf, view);
  footers(pdf, view);
}

function warning(pdf: Pdf, word: string, meaning: string, options: { readonly width: number }): void {
  pdf
    .font('Helvetica-Bold')
    .fontSize(13)
    .fillColor(CAUTION)
    .text(word, { ...options, continued: true });
  pdf.font('Helvetica').fontSize(10).text(`   ${meaning}`).moveDown(0.3);
}

function fact(pdf: Pdf, name: string, value: string): void {
  const top = pdf.y;
  pdf.font('Helvetica').fontSize(9.5).fillColor(QUIET).text(name, MARGIN, top, { width: FACT_LABEL_WIDTH });
  pdf
    .fillColor(INK)
    .text(printable(value), MARGIN + FACT_LABEL_WIDTH, top, { width: innerWidth(pdf) - FACT_LABEL_WIDTH });
  pdf.x = MARGIN;
  pdf.y += 1;
}

function table(pdf: Pdf, { title, columns, rows }: CertificateTable): void {
  const whole = columns.reduce((sum, [, share]) => sum + share, 0);
  const widths = columns.map(([, share]) => (innerWidth(pdf) * share) / whole);
  pdf.moveDown(1);
  keepTogether(pdf, 60);
  pdf.font('Helvetica-Bold').fontSize(12).fillColor(INK).text(title, MARGIN).moveDown(0.3);
  pdf.fontSize(8.5).fillColor(QUIET);
  row(
    pdf,
    columns.map(([column]) => column),
    widths,
  );
  pdf.font('Helvetica').fillColor(INK);
  for (const cells of rows) row(pdf, cells, widths);
}

function row(pdf: Pdf, cells: readonly string[], widths: readonly number[]): void {
  const placed = cells.map((text, column) => {
    const left = MARGIN + widths.slice(0, column).reduce((sum, width) => sum + width, 0);
    return { text, left, width: (widths[column] ?? 0) - COLUMN_GAP };
  });
  const height = Math.max(...placed.map(({ text, width }) => pdf.heightOfString(text, { width })));
  keepTogether(pdf, height + ROW_GAP);
  const top = pdf.y;
  for (const { text, left, width } of placed) pdf.text(text, left, top, { width });
  pdf.x = MARGIN;
  pdf.y = top + height + ROW_GAP;
}

function verification(pdf: Pdf, view: CertificateView): void {
  const words = `${view.howToVerify} The code holds the id and the digest of this certificate, and no address.`;
  pdf.font('Helvetica').fontSize(9.5).moveDown(1);
  keepTogether(pdf, pdf.heightOfString(words) + HEADING_HEIGHT);
  pdf.font('Helvetica-Bold').fontSize(12).fillColor(INK).text('Verification', MARGIN).moveDown(0.3);
  pdf.font('Helvetica').fontSize(9.5).text(words);
}

function squares(pdf: Pdf, text: string, left: number, top: number): void {
  const { size, dark } = qrCode(text);
  const side = QR_SIDE / (size + 2 * QUIET_ZONE);
  for (const [column, line] of dark)
    pdf.rect(left + (column + QUIET_ZONE) * side, top + (line + QUIET_ZONE) * side, side, side);
  pdf.fill('#000000').fillColor(INK);
}

/** Every page has the warnings, because printed pages get separated. */
function footers(pdf: Pdf, view: CertificateView): void {
  const { start, count } = pdf.bufferedPageRange();
  const words = view.warnings.map(([word]) => word).join(' · ');
  for (let page = start; page < start + count; page += 1) {
    pdf.switchToPage(page);
    // Without this, text below the bottom margin would begin a new page.
    pdf.page.margins.bottom = 0;
    pdf
      .font('Helvetica')
      .fontSize(8)
      .fillColor(QUIET)
      .text(
        `${words} · ${view.certId} · page ${page - start + 1} of ${count}`,
        MARGIN,
        pdf.page.height - FOOTER_FROM_BOTTOM,
        { lineBreak: false },
      );
  }
}

/** The standard fonts have Latin letters only. A letter that they do not have is shown as a question mark. */
const printable = (text: string): string => text.replace(/[^ -~\u00a0-\u00ff]/gu, '?');

const innerWidth = (pdf: Pdf): number => pdf.page.width - 2 * MARGIN;

function keepTogether(pdf: Pdf, height: number): void {
  if (pdf.y + height > pdf.page.height - MARGIN) pdf.addPage();
}
