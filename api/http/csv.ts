/** Lists as CSV (RFC 4180), for spreadsheets (contract §1). */

/** A spreadsheet takes a text that begins with one of these for a formula. With a quote before it, it is a text. */
const FORMULA = /^[=+\-@\t\r]/;

/** A line of a table, with its end. */
export const csvLine = (cells: readonly (string | null)[]): string => `${cells.map(cellOf).join(',')}\r\n`;

function cellOf(value: string | null): string {
  const text = FORMULA.test(value ?? '') ? `'${value}` : (value ?? '');
  return /[",\r\n']/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
