/**
 * `npm run demo`: a partner's first settlement against the running stack, each request and its answer printed, each
 * answer compared with what the documentation promises. Exits 1 when anything differs.
 *
 * Options: `--url <API>`; by default the stack that `npm start` runs in this clone.
 */
import { parseArgs, styleText } from 'node:util';
import { playFirstSettlement } from './demo/first-settlement.ts';
import { createNarrator } from './demo/narrator.ts';
import { findRunningStack } from './stack/state.ts';

const { values } = parseArgs({ options: { url: { type: 'string' } } });
const url = values.url ?? findRunningStack()?.apiUrl;

if (url === undefined) {
  console.error('No stack is running in this clone: run `npm start` in another terminal, or name one with --url.');
  process.exitCode = 1;
} else {
  const narrator = createNarrator(url);
  try {
    await playFirstSettlement(narrator);
    console.log(styleText(['bold', 'green'], '\nEverything is as promised.'));
  } catch (error) {
    console.error(styleText(['bold', 'red'], `\n${error instanceof Error ? error.message : String(error)}`));
    process.exitCode = 1;
  }
}
