/** Output in a terminal: in colors where colors say something, and in none where the person wants none (NO_COLOR). */
import path from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { repositoryRoot } from '../../process/local/place.ts';

const TERMINAL = path.join(repositoryRoot, 'test', 'support', 'terminal.py');
const TIMEOUT_S = 30;
const ESCAPE = '\u001b[';

/** A delivery that is none, received by `npm run sandbox -- listen`. */
const LISTEN = `
  import { createListener } from './scripts/sandbox/listen.ts';
  const deps = { secret: () => 'whsec_none', print: console.log, printData: () => undefined, now: () => new Date() };
  const server = createListener(deps).listen(0, '127.0.0.1', async () => {
    await fetch('http://127.0.0.1:' + server.address().port, { method: 'POST', body: '{}' });
    server.close();
  });`;
const LISTENER = ['--input-type=module', '--eval', LISTEN];

/** What a terminal of its own shows of a program of ours, until it shows `text`. */
async function shown(text: string, args: readonly string[], env: Readonly<Record<string, string>>): Promise<string> {
  const node = [process.execPath, '--import', 'tsx', ...args];
  const { stdout } = await execa('python3', [TERMINAL, text, String(TIMEOUT_S), ...node], {
    cwd: repositoryRoot,
    env: { PATH: process.env['PATH'] ?? '', TERM: 'xterm-256color', NODE_NO_WARNINGS: '1', ...env },
    extendEnv: false,
  });
  expect(stdout).toContain(text);
  return stdout;
}

test('the verdict on a delivery is colored in a terminal, and not with NO_COLOR', async () => {
  expect(await shown('headers_missing', LISTENER, {})).toContain(ESCAPE);
  expect(await shown('headers_missing', LISTENER, { NO_COLOR: '1' })).not.toContain(ESCAPE);
});
