/**
 * Charts of the page of figures. Their data are the page's own tables: a picture `images/performance-<name>.svg` shows
 * the column `/s` of the table above it, each figure as a bar with the least and the greatest of its rounds. What is
 * compared with, a bare equivalent, is an empty bar.
 */
import { html } from 'ghtml';
import { FILE_STYLE } from '../../api/pages/settlement-picture.ts';

const COLUMN = '/s';
const WIDTH = 640;
const BAR_MAX = 540;
const PITCH = 42;
const BAR = { top: 18, height: 12, colour: '#2a8f9a' } as const;

const CHART = /((?:^\|.*\n)+)\n!\[([^\]]*)\]\((images\/performance-[a-z-]+\.svg)\)/gm;
const FIGURE = /^\**([\d.]+)\**(?: \(([\d.]+)–([\d.]+)\))?/;

type Figure = { readonly label: string; readonly value: number; readonly least: number; readonly greatest: number };

/** The charts of the page by their paths below the repository. @throws Error if a table has no such column */
export const charts = (page: string): Record<string, string> =>
  Object.fromEntries(
    [...page.matchAll(CHART)].map(([, table = '', label = '', file = '']) => [
      `docs/${file}`,
      chart(table, label, file),
    ]),
  );

function chart(table: string, label: string, file: string): string {
  const [head = [], , ...rows] = table
    .trim()
    .split('\n')
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  const column = head.indexOf(COLUMN);
  if (column < 0) throw new Error(`the table above ${file} has no column ${COLUMN}`);
  const figures = rows.flatMap((cells) => figureOf(cells, head, column));
  const scale = BAR_MAX / Math.max(...figures.map(({ greatest }) => greatest));
  return html`<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="${label}"
  viewBox="0 0 ${WIDTH} ${figures.length * PITCH}" font-family="system-ui, sans-serif" font-size="12">
!${FILE_STYLE}
!${figures.map((figure, index) => bar(figure, index * PITCH, scale))}</svg>
`;
}

/** The cells before the figure say what it is. */
function figureOf(cells: readonly string[], head: readonly string[], column: number): Figure[] {
  const [, value, least = value, greatest = value] = FIGURE.exec(cells[column] ?? '') ?? [];
  if (value === undefined) return [];
  const named = cells.slice(0, column).map((cell, index) => (/^\d+$/.test(cell) ? `${cell} ${head[index]}` : cell));
  const label = named
    .filter((cell) => cell !== '')
    .join(', ')
    .replaceAll('`', '');
  return [{ label, value: Number(value), least: Number(least), greatest: Number(greatest) }];
}

function bar({ label, value, least, greatest }: Figure, top: number, scale: number): string {
  const at = (figure: number) => Math.round(figure * scale);
  const isBare = /\bbare\b|^the same on/.test(label);
  const middle = top + BAR.top + BAR.height / 2;
  const fill = isBare ? 'none' : BAR.colour;
  return html`<text x="0" y="${top + 13}" fill="currentColor">${label}</text>
<rect x="0" y="${top + BAR.top}" width="${at(value)}" height="${BAR.height}" fill="${fill}" stroke="${BAR.colour}"/>
<path d="M${at(least)} ${middle}H${at(greatest)}" stroke="currentColor"/>
<text x="${at(greatest) + 6}" y="${middle + 4}" fill="currentColor">${value}/s</text>
`;
}
