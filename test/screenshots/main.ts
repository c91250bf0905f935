/**
 * `npm run screenshots`: pictures of every page of the service and of Temporal UI, in `.local/screenshots`: light and
 * dark, wide and as narrow as a telephone. They are for people; no test reads them.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Browser } from 'playwright-core';
import { optional, text, type ValuesOf, withDefault } from '../../ops/command-line/parameter.ts';
import { command, EXIT, type Printer, runProgram, standardOutput } from '../../ops/command-line/program.ts';
import { localDirectory } from '../../process/local/place.ts';
import { findRunningStack } from '../../process/local/running-stack.ts';
import { API_URL } from '../../scripts/sandbox/command.ts';
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

const TAKES = {
  url: API_URL,
  temporalUi: optional('--temporal-ui <url>', 'Temporal UI; by default that of the stack in this clone', text),
  only: withDefault(
    '--only <beginning>',
    'only the pictures whose names begin so',
    { read: (value) => ({ value }) },
    '',
  ),
};

async function takePictures({ print }: Printer, baseUrl: string, temporalUi: string | undefined, only: string) {
  const subjects = await createSubjects(baseUrl);
  const views = [
    ...serviceViews(baseUrl, subjects),
    ...(temporalUi === undefined ? [] : await temporalViews(temporalUi, subjects)),
  ].filter(({ name }) => name.startsWith(only));
  if (temporalUi === undefined)
    print('The address of Temporal UI is unknown (--temporal-ui), so there are no pictures of it.');
  const folder = path.join(localDirectory, 'screenshots');
  mkdirSync(folder, { recursive: true });
  const browser = await startBrowser();
  try {
    for (const screen of SCREENS)
      for (const view of views) print(path.relative(process.cwd(), await shoot(browser, screen, view, folder)));
  } finally {
    await browser.close();
  }
}

const program = command({
  name: 'screenshots',
  description: 'Takes pictures of every page and of Temporal UI, into .local/screenshots. Needs Chromium.',
  takes: TAKES,
  json: false,
  run: async (printer: Printer, { url, temporalUi, only }: ValuesOf<typeof TAKES>) => {
    const stack = await borrowStack(url, printer.print);
    try {
      const ui = temporalUi ?? (url === undefined ? findRunningStack()?.temporalUiUrl : undefined);
      await takePictures(printer, stack.baseUrl, ui, only);
      return EXIT.done;
    } finally {
      await stack.giveBack();
    }
  },
});

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) => act(printer));
