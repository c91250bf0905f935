/** Figures in the form of `docs/performance.md`: the median of the rounds with the least and the greatest, in tables. */

/** The values of all rounds as `median (least–greatest)`. */
export function figure(values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b);
  return `${short(median(sorted))} (${short(sorted[0] ?? Number.NaN)}–${short(sorted.at(-1) ?? Number.NaN)})`;
}

/** Three significant digits. On a shared machine, more would mean nothing. */
function short(value: number): string {
  if (!Number.isFinite(value)) return '–';
  return value >= 100 ? value.toFixed(0) : value.toPrecision(Math.abs(value) < 1 ? 2 : 3);
}

function median(sorted: readonly number[]): number {
  const middle = sorted.length / 2;
  const [below = Number.NaN, above = Number.NaN] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return (below + above) / 2;
}

/** The ratio of two contenders in each round. It varies less than either of them. */
export const ratios = (ours: readonly number[], theirs: readonly number[]): number[] =>
  ours.map((value, round) => value / (theirs[round] ?? Number.NaN));

/** Prints a Markdown table. */
export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  console.log(['', line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line), ''].join('\n'));
}
