/**
 * `npm test`: everything that is checked before the tests, then all tests. `npm test -- <file or option> …` runs only
 * Vitest with these arguments.
 */
import { execaSync } from 'execa';
import { repositoryRoot } from '../process/local/place.ts';

const run = (program: string, ...args: string[]): boolean =>
  execaSync(program, args, { cwd: repositoryRoot, stdio: 'inherit', reject: false, preferLocal: true }).exitCode === 0;

const chosen = process.argv.slice(2);
const isReady = chosen.length > 0 || run('npm', 'run', '--silent', 'check');
process.exitCode = isReady && run('vitest', 'run', ...chosen) ? 0 : 1;
