/**
 * `npm test`: all tests, and beside them everything that is checked without running it. `npm test -- <file or option>
 * …` runs only Vitest with these arguments.
 */
import { execa } from 'execa';
import { repositoryRoot } from '../process/local/place.ts';

const OPTIONS = { cwd: repositoryRoot, reject: false, preferLocal: true } as const;

const chosen = process.argv.slice(2);
// The tests often wait, and the check takes one core for half a minute.
const check = chosen.length > 0 ? undefined : execa('npm', ['run', '--silent', 'check'], { ...OPTIONS, all: true });
const tests = await execa('vitest', ['run', ...chosen], { ...OPTIONS, stdio: 'inherit' });
const checked = await check;
if (checked)
  console.log(checked.exitCode === 0 ? 'npm run check: nothing to report' : `npm run check:\n${checked.all}`);
process.exitCode = tests.exitCode === 0 && checked?.failed !== true ? 0 : 1;
