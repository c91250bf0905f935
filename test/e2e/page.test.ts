/** The pages in a real browser: what it asks for, what it complains about, and what people see and reach. */
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCertifier } from '../../activities/certificate.ts';
import { buildApp } from '../../api/app.ts';
import { type Caller, createTestApi, TEST_SECRETS, type TestApi } from '../support/api.ts';
import { BROWSER_TIMEOUT_MS, startBrowser } from '../support/browser.ts';
import { insertCertifiedSettlement } from '../support/settlement.ts';

const PLAIN_PAGES = ['/', '/status', '/problems/idempotency_key_reused'];
const NARROW = { width: 360, height: 740 };
const WIDE = { width: 1280, height: 900 };
const GROUND = { light: 'rgb(255, 255, 255)', dark: 'rgb(18, 24, 29)' };

let api: TestApi;
let caller: Caller;
let certificatePath: string;
let app: FastifyInstance;
let baseUrl: string;
let browser: Browser;
beforeAll(async () => {
  api = await createTestApi();
  app = await buildApp(api.deps, pino({ level: 'silent' }));
  [browser, baseUrl] = await Promise.all([startBrowser(), app.listen({ host: '127.0.0.1', port: 0 })]);
  caller = await api.createCaller('read');
  const { certId } = await insertCertifiedSettlement(
    api.connection.db,
    createCertifier([TEST_SECRETS.signing]),
    caller.orgId,
  );
  certificatePath = `/v1/caribbean/certificate/${certId}`;
}, BROWSER_TIMEOUT_MS);
afterAll(async () => {
  await browser?.close();
  await app?.close();
  await api.close();
});

type Visit = { readonly page: Page; readonly complaints: string[]; readonly requested: string[] };

/** Opens a page and listens to everything that the browser asks for and complains about. */
async function visit(
  path: string,
  options: BrowserContextOptions,
  use: (visit: Visit) => Promise<void>,
): Promise<void> {
  const context = await browser.newContext({ viewport: WIDE, ...options });
  try {
    const page = await context.newPage();
    const [complaints, requested]: [string[], string[]] = [[], []];
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('requestfailed', (request) => complaints.push(`${request.url()} failed`));
    page.on('request', (request) => requested.push(request.url()));
    await page.goto(`${baseUrl}${path}`);
    await use({ page, complaints, requested });
    expect(complaints).toEqual([]);
    expect(requested.filter((url) => !url.startsWith(`${baseUrl}/`) && !/^(data|blob):/.test(url))).toEqual([]);
  } finally {
    await context.close();
  }
}

/** What was asked for, each once, whatever its digest: the page first. The browser asks for the icon when it likes. */
function kindsOf([page = '', ...others]: readonly string[]): string[] {
  const paths = [page, ...others.toSorted()].map((url) => new URL(url).pathname.replace(/-[0-9a-f]{16}\./, '.'));
  return [...new Set([paths[0] ?? '', '/assets/icon.svg', ...paths])];
}

/** Nothing to scroll sideways, and nothing cut off. */
const overflow = (page: Page): Promise<number> =>
  page.locator('html').evaluate((html) => html.scrollWidth - html.clientWidth);

/** What the browser makes of the styles. */
const styleOf = (page: Page, selector: string, property: string): Promise<string> =>
  page
    .locator(selector)
    .evaluate((element, name) => element.ownerDocument.defaultView.getComputedStyle(element)[name], property);

/** Texts whose contrast with what is behind them is less than people with weak sight need (WCAG 2.2, 1.4.3). */
function faintTexts(page: Page): Promise<string[]> {
  return page.locator('body').evaluate((body) => {
    const TEXT_NODE = 3;
    const styleOf = body.ownerDocument.defaultView.getComputedStyle;
    const numbers = (color: string) => (color.match(/[\d.]+/g) ?? []).map(Number);
    const luminance = (color: string) => {
      const [red = 0, green = 0, blue = 0] = numbers(color).map((value) =>
        value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4,
      );
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const groundOf = (element: typeof body): string => {
      if (!element) return 'rgb(255, 255, 255)';
      const { backgroundColor } = styleOf(element);
      return (numbers(backgroundColor)[3] ?? 1) === 0 ? groundOf(element.parentElement) : backgroundColor;
    };
    return Array.from<typeof body>(body.querySelectorAll('*'))
      .filter((element) =>
        Array.from<typeof body>(element.childNodes).some(
          (node) => node.nodeType === TEXT_NODE && node.textContent.trim() !== '',
        ),
      )
      .filter((element) => {
        const [text, ground] = [luminance(styleOf(element).color), luminance(groundOf(element))];
        return (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05) < 4.5;
      })
      .map((element) => String(element.textContent).trim());
  });
}

describe.each([
  ['with scripts', true],
  ['without scripts', false],
])('%s', (_name, javaScriptEnabled) => {
  test.each(PLAIN_PAGES)('%s is whole at any width, light and dark, and asks nothing of the world', async (path) => {
    await visit(path, { javaScriptEnabled }, async ({ page, requested }) => {
      expect(await page.locator('h1').count()).toBe(1);
      expect(await page.getByRole('note').textContent()).toContain('LOCAL SANDBOX: simulation only');
      for (const colorScheme of ['light', 'dark'] as const) {
        for (const viewport of [NARROW, WIDE]) {
          await page.emulateMedia({ colorScheme });
          await page.setViewportSize(viewport);
          expect(await styleOf(page, 'body', 'backgroundColor')).toBe(GROUND[colorScheme]);
          expect(await overflow(page)).toBe(0);
          expect(await faintTexts(page)).toEqual([]);
        }
      }
      expect(kindsOf(requested)).toEqual([path, '/assets/icon.svg', '/assets/style.css']);
    });
  });
});

test('the keyboard goes past the navigation to the content, and shows where it is', async () => {
  await visit('/', {}, async ({ page }) => {
    const focused = async () => {
      const element = page.locator(':focus');
      return {
        text: await element.textContent(),
        outline: await styleOf(page, ':focus', 'outlineWidth'),
        left: (await element.boundingBox())?.x,
      };
    };
    await page.keyboard.press('Tab');
    const skip = await focused();
    expect(skip.text).toBe('Skip to content');
    expect(skip.left).toBeGreaterThanOrEqual(0);
    for (const text of ['Settlement service', 'Overview', 'API reference', 'Status']) {
      await page.keyboard.press('Tab');
      expect(await focused()).toMatchObject({ text, outline: '3px' });
    }
    await page.keyboard.press('Enter');
    await page.waitForURL(`${baseUrl}/status`);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForURL(`${baseUrl}/status#main`);
  });
});

test('the evidence of a capability opens by keyboard, without scripts', async () => {
  await visit('/status', { javaScriptEnabled: false, viewport: NARROW }, async ({ page }) => {
    const details = page.locator('article details').first();
    expect(await details.locator('li').first().isVisible()).toBe(false);
    await details.locator('summary').focus();
    await page.keyboard.press('Enter');
    expect(await details.locator('li').first().isVisible()).toBe(true);
    expect(await overflow(page)).toBe(0);
  });
});

describe('the reference', () => {
  test('shows every group and a curl to copy, tries nothing, asks for no key, fits a telephone', {
    timeout: 60_000,
  }, async () => {
    await visit('/docs', {}, async ({ page, requested }) => {
      await page.getByRole('heading', { name: 'Start a settlement' }).waitFor({ timeout: 20_000 });
      await page.getByText('--request POST').first().waitFor();
      expect(await page.locator('pre').first().textContent()).toMatch(/^curl [\s\S]*\/v2\/settle[\s\S]*X-API-Key/);
      for (const name of ['Test Request', 'Send', 'Open API Client', 'Authenticate'])
        expect(await page.getByRole('button', { name, exact: true }).count()).toBe(0);
      expect(await page.locator('input:visible, textarea:visible').count()).toBe(0);
      expect(await page.locator('.scalar-reference-intro-auth').first().isVisible()).toBe(false);
      for (const group of ['Settlement', 'Provider webhooks', 'Recipients', 'Posture', 'Service'])
        expect(await page.getByRole('button', { name: group }).count()).toBeGreaterThan(0);
      expect(kindsOf(requested)).toEqual(['/docs', '/assets/icon.svg', '/assets/reference.js', '/openapi.json']);
      await page.setViewportSize(NARROW);
      expect(await overflow(page)).toBe(0);
      expect(JSON.stringify(await page.context().storageState())).not.toMatch(/secret|sk_/i);
    });
  });

  test('is a list of operations without scripts', async () => {
    await visit('/docs', { javaScriptEnabled: false, viewport: NARROW }, async ({ page }) => {
      expect(await page.getByText('Start a settlement', { exact: true }).isVisible()).toBe(true);
      expect(await overflow(page)).toBe(0);
      expect(await faintTexts(page)).toEqual([]);
    });
  });
});

describe('a certificate', () => {
  test('is a page that stands alone, fits a telephone and is read in the dark', async () => {
    const options = { viewport: NARROW, extraHTTPHeaders: { 'x-api-key': caller.apiKey, accept: 'text/html' } };
    await visit(certificatePath, options, async ({ page, requested }) => {
      expect(await page.getByRole('note').allTextContents()).toEqual([
        expect.stringContaining('SIMULATION'),
        expect.stringContaining('UNANCHORED'),
      ]);
      expect(
        await page.getByRole('img', { name: /^QR code of CERT-[0-9A-F]{32} sha256:[0-9a-f]{64}$/ }).isVisible(),
      ).toBe(true);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await overflow(page)).toBe(0);
        expect(await faintTexts(page)).toEqual([]);
      }
      expect(requested.filter((url) => !url.endsWith('/favicon.ico'))).toEqual([`${baseUrl}${certificatePath}`]);
    });
  });
});
