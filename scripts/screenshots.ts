/**
 * `npm run screenshots`: a picture of every page of the running stack under `.local/screenshots`, light and dark, wide
 * and as narrow as a telephone. For looking at; no test reads them.
 *
 * Options: `--url <API>`; by default the stack that `npm start` runs in this clone.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { startBrowser } from '../test/support/browser.ts';
import { localDirectory } from './stack/place.ts';
import { findRunningStack } from './stack/state.ts';

const PAGES = [
  { name: 'home', path: '/' },
  { name: 'status', path: '/status' },
  { name: 'problem', path: '/problems/idempotency_key_reused' },
  { name: 'docs', path: '/docs' },
] as const;

const VIEWS = [
  { name: 'wide', width: 1280, colorScheme: 'light' },
  { name: 'dark', width: 1280, colorScheme: 'dark' },
  { name: 'narrow', width: 360, colorScheme: 'light' },
  { name: 'narrow-dark', width: 360, colorScheme: 'dark' },
] as const;

const { values } = parseArgs({ options: { url: { type: 'string' } } });
const url = values.url ?? findRunningStack()?.apiUrl;

if (url === undefined) {
  console.error('No stack is running in this clone: run `npm start` in another terminal, or name one with --url.');
  process.exitCode = 1;
} else {
  const folder = path.join(localDirectory, 'screenshots');
  mkdirSync(folder, { recursive: true });
  const browser = await startBrowser();
  try {
    for (const view of VIEWS) {
      const context = await browser.newContext({ colorScheme: view.colorScheme, viewport: { width: view.width, height: 900 } });
      for (const shown of PAGES) {
        const page = await context.newPage();
        await page.goto(`${url}${shown.path}`, { waitUntil: 'networkidle' });
        // The reference draws itself, after everything has come.
        await page.locator('h1').first().waitFor();
        const file = path.join(folder, `${shown.name}-${view.name}.png`);
        // The reference is as long as the whole interface; its first screen tells enough.
        writeFileSync(file, await page.screenshot({ fullPage: shown.name !== 'docs' }));
        console.log(path.relative(process.cwd(), file));
        await page.close();
      }
      await context.close();
    }
  } finally {
    await browser.close();
  }
}
