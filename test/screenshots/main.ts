/**
 * `npm run screenshots`: every page and guide at the width of a desk and of a phone, light and dark, as pictures under
 * `.local/screenshots`. Fails when the browser broke a word or cut code on any of them.
 */
import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { GUIDE_PLACES } from '../../api/pages/guide.ts';
import { REFERENCE_PLACES } from '../../api/pages/reference.ts';
import { optional, text, type ValuesOf } from '../../ops/command-line/parameter.ts';
import {
  CommandError,
  command,
  EXIT,
  type Printer,
  runProgram,
  standardOutput,
} from '../../ops/command-line/program.ts';
import { localDirectory } from '../../process/local/place.ts';
import { nameRunningStack } from '../../process/local/running-stack.ts';
import { settleByCard, signUp } from '../../scripts/sandbox/partner.ts';
import { startBrowser } from '../support/browser.ts';
import { layoutFaults } from '../support/page-layout.ts';

const FOLDER = path.join(localDirectory, 'screenshots');
const WIDTHS = { desk: { width: 1280, height: 900 }, phone: { width: 360, height: 740 } } as const;
const SCHEMES = ['light', 'dark'] as const;

const TAKES = {
  url: optional('--url <address>', 'of an API, in place of the stack that runs in this clone', text),
  only: optional('--only <text>', 'only pages whose address contains it', text),
};

type Shot = { readonly path: string; readonly headers: Record<string, string> };

const PAGES = [
  '/',
  '/status',
  ...REFERENCE_PLACES.map(({ path: address }) => address),
  '/docs/search?q=idempotency',
  ...GUIDE_PLACES.map(({ path: address }) => address),
  '/problems',
  '/problems/idempotency_key_reused',
  '/nothing-here',
];

/** A certificate needs a key and a settlement that has ended. */
async function certificateOf(baseUrl: string): Promise<Shot> {
  const { apiKey, client } = await signUp({ baseUrl });
  const settled = await client.settlements.wait(await settleByCard({ client }));
  return {
    path: `/v1/caribbean/certificate/${settled.certificate_id}`,
    headers: { 'x-api-key': apiKey, accept: 'text/html' },
  };
}

async function take(browser: Browser, baseUrl: string, shot: Shot): Promise<string[]> {
  const name = shot.path === '/' ? 'home' : shot.path.slice(1).replaceAll(/[/?=]/g, '-').slice(0, 60);
  const faults: string[] = [];
  for (const [kind, viewport] of Object.entries(WIDTHS)) {
    for (const colorScheme of SCHEMES) {
      const options: BrowserContextOptions = { viewport, colorScheme, extraHTTPHeaders: shot.headers };
      const context = await browser.newContext(options);
      const page = await context.newPage();
      const answer = await page.goto(`${baseUrl}${shot.path}`);
      if (!answer?.headers()['content-type']?.startsWith('text/html'))
        throw new CommandError(EXIT.refused, `${shot.path} is no page: ${answer?.status()}`);
      await page.screenshot({ path: path.join(FOLDER, `${name}-${kind}-${colorScheme}.png`), fullPage: true });
      if (colorScheme === SCHEMES[0])
        faults.push(...(await layoutFaults(page)).map((fault) => `${shot.path} on a ${kind}: ${fault}`));
      await context.close();
    }
  }
  return faults;
}

const program = command({
  name: 'screenshots',
  description: `Takes every page at two widths, light and dark, into ${path.relative('.', FOLDER)}.`,
  takes: TAKES,
  json: false,
  run: async ({ print, warn }: Printer, { url, only = '' }: ValuesOf<typeof TAKES>) => {
    const baseUrl = url ?? nameRunningStack()?.apiUrl;
    if (baseUrl === undefined)
      throw new CommandError(EXIT.unavailable, 'Start the stack with npm start, or give --url.');
    const browser = await startBrowser().catch((error: unknown) => {
      throw new CommandError(EXIT.unavailable, error instanceof Error ? error.message : String(error));
    });
    try {
      await rm(FOLDER, { recursive: true, force: true });
      await mkdir(FOLDER, { recursive: true });
      const shots: Shot[] = PAGES.filter((address) => address.includes(only)).map((address) => ({
        path: address,
        headers: { accept: 'text/html' },
      }));
      if ('certificate'.includes(only)) shots.push(await certificateOf(baseUrl));
      const faults: string[] = [];
      for (const shot of shots) faults.push(...(await take(browser, baseUrl, shot)));
      for (const fault of faults) warn(fault);
      print(`${shots.length} pages in ${FOLDER}; ${faults.length} faults of layout`);
      return faults.length === 0 ? EXIT.done : EXIT.refused;
    } finally {
      await browser.close();
    }
  },
});

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) => act(printer));
