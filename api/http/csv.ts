/** Lists as CSV (RFC 4180), for spreadsheets (contract §1). */

/** A spreadsheet takes a text that begins with one of these for a formula. With a quote before it, it is a text. */
const FORMULA = /^[=+\-@\t\r]/;

/** The lines of a table, each with its end: the names of the columns, then one line for each row. */
export function csvOf<Name extends string>(
  columns: readonly Name[],
  rows: readonly Readonly<Record<Name, string | null>>[],
): string {
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column]))];
  return lines.map((cells) => `${cells.map(cellOf).join(',')}\r\n`).join('');
}

function cellOf(value: string | null): string {
  const text = FORMULA.test(value ?? '') ? `'${value}` : (value ?? '');
  return /[",\r\n']/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
