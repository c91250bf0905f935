/**
 * `npm run torture -- --seed 1 --minutes 5`: tries to refute that every accepted settlement has one outcome and every
 * cent is paid out or shown as due back, whatever is killed, cut, slowed, doubled or reordered.
 */
import { parseArgs } from 'node:util';
import { lifeAt } from './life.ts';
import { type RunReport, torture } from './run.ts';

const LIVES_SHOWN = 3;

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '5' },
    rate: { type: 'string', default: '1' },
    calm: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});

// The stack is a set of processes of its own: an interrupted run must stop them.
const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => interrupted.abort());

const report = await torture({
  signal: interrupted.signal,
  seed: Number(values.seed),
  minutes: Number(values.minutes),
  rate: Number(values.rate),
  monkey: !values.calm,
  say: (line) => console.error(line),
});
if (values.json) console.log(JSON.stringify(report, null, 2));
else print(report);
process.exitCode = report.violations.length === 0 ? 0 : 1;

function print({ seed, lives, ends, faults, violations, deliveries }: RunReport): void {
  const counted = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts)
      .map(([name, count]) => `${name} ${count}`)
      .join(', ');
  console.log(`seed ${seed}: ${lives} lives (${counted(ends)}), ${deliveries} deliveries`);
  console.log(`faults: ${counted(faults) || 'none'}`);
  for (const rule of new Set(violations.map((violation) => violation.rule))) {
    const found = violations.filter((violation) => violation.rule === rule);
    console.log(`VIOLATED, ${found.length} times: ${rule}`);
    for (const { life, detail } of found.slice(0, LIVES_SHOWN)) {
      console.log(`  ${detail}`);
      if (life >= 0) console.log(`  life ${life}: ${JSON.stringify(lifeAt(seed, life))}`);
    }
  }
  console.log(violations.length === 0 ? `PASS seed ${seed}` : `FAIL seed ${seed}: ${violations.length} violations`);
}
