/** Figures as the page shows them: the median of the rounds with the least and the greatest, and rows of a table. */

/** A value of each round as `median (least–greatest)`. */
export function figure(values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b);
  return `${short(median(sorted))} (${short(sorted[0] ?? Number.NaN)}–${short(sorted.at(-1) ?? Number.NaN)})`;
}

/** Three significant digits are more than a shared machine can promise. */
function short(value: number): string {
  if (!Number.isFinite(value)) return '–';
  return value >= 100 ? value.toFixed(0) : value.toPrecision(Math.abs(value) < 1 ? 2 : 3);
}

function median(sorted: readonly number[]): number {
  const middle = sorted.length / 2;
  const [below = Number.NaN, above = Number.NaN] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return (below + above) / 2;
}

/** How two contenders compare in each round; their quotient is steadier than either. */
export const ratios = (ours: readonly number[], theirs: readonly number[]): number[] =>
  ours.map((value, round) => value / (theirs[round] ?? Number.NaN));

/** Prints a table as `docs/performance.md` has it. */
export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  console.log(['', line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line), ''].join('\n'));
}
