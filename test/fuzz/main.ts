/**
 * `npm run fuzz`: Schemathesis tests every operation of the API. Exits 1 when an answer is not one that the OpenAPI
 * document describes.
 *
 * Options: `--minutes <n>` (5), `--seed <n>` (1), `--url <API>`; by default the stack that `npm start` runs in this
 * clone, or one that is started for it.
 */
import path from 'node:path';
import { parseArgs } from 'node:util';
import { localDirectory } from '../../process/place.ts';
import { borrowStack } from '../../scripts/stack/borrowed.ts';
import { acquireSchemathesis } from './python.ts';
import { fuzz } from './schemathesis.ts';

const SECONDS_PER_MINUTE = 60;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: '1' },
    url: { type: 'string' },
  },
});
const minutes = Number(values.minutes);
const seed = Number(values.seed);

if (!(minutes > 0) || !Number.isSafeInteger(seed)) {
  console.error('Usage: npm run fuzz -- [--minutes <n>] [--seed <n>] [--url <API>]');
  process.exitCode = 1;
} else {
  try {
    const python = await acquireSchemathesis(path.join(localDirectory, 'fuzz'), console.log);
    const stack = await borrowStack(values.url, console.log);
    try {
      const passed = await fuzz({
        python,
        baseUrl: stack.baseUrl,
        seconds: Math.ceil(minutes * SECONDS_PER_MINUTE),
        seed,
        obeysRateLimit: !stack.isOwn,
        print: console.log,
      });
      console.log(
        passed
          ? '\nEvery answer is as documented.'
          : `\nSome answers are not as documented. Repeat this run with: npm run fuzz -- --minutes ${minutes} --seed ${seed}`,
      );
      process.exitCode = passed ? 0 : 1;
    } finally {
      await stack.giveBack();
    }
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
  }
}
