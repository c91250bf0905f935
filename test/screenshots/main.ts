/**
 * `npm run screenshots`: pictures of every page of the service and of Temporal UI, in `.local/screenshots`: light and
 * dark, wide and as narrow as a telephone. They are for people; no test reads them.
 *
 * Options: `--url <API>` and `--temporal-ui <address>`; by default the stack that `npm start` runs in this clone, or
 * one that is started for this. The settlements in the pictures are created first. `--only <beginning of a name>` takes
 * only some of the pictures.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { Browser } from 'playwright-core';
import { localDirectory } from '../../process/place.ts';
import { findRunningStack } from '../../process/running-stack.ts';
import { borrowStack } from '../../scripts/stack/borrowed.ts';
import { startBrowser } from '../support/browser.ts';
import { createSubjects } from './subject.ts';
import { serviceViews, temporalViews, type View } from './view.ts';

const SCREENS = [
  { name: 'wide', width: 1280, colorScheme: 'light' },
  { name: 'dark', width: 1280, colorScheme: 'dark' },
  { name: 'narrow', width: 360, colorScheme: 'light' },
  { name: 'narrow-dark', width: 360, colorScheme: 'dark' },
] as const;
const HEIGHT = 900;
const LOAD_TIMEOUT_MS = 60_000;
/** Temporal UI still draws after it has loaded everything. */
const DRAW_MS = 1_500;

async function shoot(browser: Browser, screen: (typeof SCREENS)[number], view: View, folder: string): Promise<string> {
  const context = await browser.newContext({
    colorScheme: screen.colorScheme,
    viewport: { width: screen.width, height: view.height ?? HEIGHT },
    locale: 'en-US',
  });
  try {
    context.setDefaultTimeout(LOAD_TIMEOUT_MS);
    const page = await context.newPage();
    if (view.headers) await page.setExtraHTTPHeaders(view.headers);
    await page.addInitScript(`Object.assign(localStorage, ${JSON.stringify(view.localStorage ?? {})})`);
    await page.goto(view.url, { waitUntil: 'load' });
    await view.ready(page);
    await page.waitForTimeout(DRAW_MS);
    const file = path.join(folder, `${view.name}-${screen.name}.png`);
    writeFileSync(file, await page.screenshot({ fullPage: !view.isLong }));
    return file;
  } finally {
    await context.close();
  }
}

const { values } = parseArgs({
  options: { url: { type: 'string' }, 'temporal-ui': { type: 'string' }, only: { type: 'string', default: '' } },
});
const stack = await borrowStack(values.url, console.log);
try {
  const temporalUi =
    values['temporal-ui'] ?? (values.url === undefined ? findRunningStack()?.temporalUiUrl : undefined);
  const subjects = await createSubjects(stack.baseUrl);
  const views = [
    ...serviceViews(stack.baseUrl, subjects),
    ...(temporalUi === undefined ? [] : await temporalViews(temporalUi, subjects)),
  ];
  if (temporalUi === undefined)
    console.log('The address of Temporal UI is unknown (--temporal-ui), so there are no pictures of it.');
  const folder = path.join(localDirectory, 'screenshots');
  mkdirSync(folder, { recursive: true });
  const browser = await startBrowser();
  const files: string[] = [];
  try {
    for (const screen of SCREENS)
      for (const view of views.filter(({ name }) => name.startsWith(values.only)))
        files.push(await shoot(browser, screen, view, folder));
  } finally {
    await browser.close();
  }
  console.log(files.map((file) => path.relative(process.cwd(), file)).join('\n'));
} finally {
  await stack.giveBack();
}
