/**
 * Figures in the form of `docs/performance.md`: the median of the rounds with the least and the greatest, in tables.
 */

/** One figure, or the values of all rounds. */
export type Cell = string | readonly number[];

/** The values of all rounds as `median (least–greatest)`; a single value alone. */
function figure(values: readonly number[]): string {
  const { median, min, max } = spreadOf(values);
  return values.length === 1 ? short(median) : `${short(median)} (${short(min)}–${short(max)})`;
}

/** The values of all rounds for programs. */
export function spreadOf(values: readonly number[]) {
  const sorted = [...values].sort((a, b) => a - b);
  return {
    median: medianOf(sorted),
    min: sorted[0] ?? Number.NaN,
    max: sorted.at(-1) ?? Number.NaN,
    rounds: values,
  };
}

/** Three significant digits. On a shared machine, more would mean nothing. */
function short(value: number): string {
  if (!Number.isFinite(value)) return '–';
  return value >= 100 ? value.toFixed(0) : value.toPrecision(Math.abs(value) < 1 ? 2 : 3);
}

function medianOf(sorted: readonly number[]): number {
  const middle = sorted.length / 2;
  const [below = Number.NaN, above = Number.NaN] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return (below + above) / 2;
}

/** The ratio of two contenders in each round. It varies less than either of them. */
export const ratios = (ours: readonly number[], theirs: readonly number[]): number[] =>
  ours.map((value, round) => value / (theirs[round] ?? Number.NaN));

/** A Markdown table. */
export function tableOf(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const line = (cells: readonly Cell[]) =>
    `| ${cells.map((cell) => (typeof cell === 'string' ? cell : figure(cell))).join(' | ')} |`;
  return ['', line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line), ''].join('\n');
}
