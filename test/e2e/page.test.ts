/** The pages in a real browser: its requests, its errors, and what people see and reach. */
import { pino } from 'pino';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { buildApp } from '../../api/app.ts';
import { GUIDE_PLACES } from '../../api/pages/guide.ts';
import { startBrowser } from '../support/browser.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { layoutFaults } from '../support/page-layout.ts';
import { stretched } from '../support/patience.ts';
import { insertCertifiedSettlement } from '../support/settlement.ts';
import { readSource } from '../support/source.ts';

const GUIDES = GUIDE_PLACES.map(({ path }) => path);
const PLAIN_PAGES = ['/', ...GUIDES, '/status', '/problems/idempotency_key_reused'];
const NARROW = { width: 360, height: 740 };
const WIDE = { width: 1280, height: 900 };
const BACKGROUND = { light: 'rgb(255, 255, 255)', dark: 'rgb(18, 24, 29)' };

type Visit = { readonly page: Page; readonly requested: string[] };

const test = withApi({ scope: 'read' })
  .extend('baseUrl', FILE, async ({ api }, { onCleanup }) => {
    const app = await buildApp(api.deps, pino({ level: 'silent' }));
    onCleanup(() => app.close());
    return await app.listen({ host: '127.0.0.1', port: 0 });
  })
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  .extend('browser', FILE, async ({}, { onCleanup }) => {
    const browser = await startBrowser();
    onCleanup(() => browser.close());
    return browser;
  })
  .extend('certificatePath', FILE, async ({ api, partner }) => {
    const { certId } = await insertCertifiedSettlement(api.connection.db, partner.orgId);
    return `/v1/caribbean/certificate/${certId}`;
  })
  /** A page that the visits without options share: a new context costs the browser as much as ten layouts. */
  .extend('plainPage', FILE, async ({ browser }) => await (await browser.newContext({ viewport: WIDE })).newPage())
  /** Opens a page. The browser must report no error and send no request to another server. */
  .extend('visit', FILE, ({ browser, baseUrl, plainPage }) => {
    return async (path: string, options: BrowserContextOptions | undefined, use: (visit: Visit) => Promise<void>) => {
      const context = options && (await browser.newContext({ viewport: WIDE, ...options }));
      const page = (await context?.newPage()) ?? plainPage;
      try {
        const [errors, requested]: [string[], string[]] = [[], []];
        page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
        page.on('pageerror', (error) => errors.push(error.message));
        page.on('requestfailed', (request) => errors.push(`${request.url()} failed`));
        page.on('request', (request) => requested.push(request.url()));
        await page.goto(`${baseUrl}${path}`);
        await use({ page, requested });
        expect(errors).toEqual([]);
        expect(requested.filter((url) => !url.startsWith(`${baseUrl}/`) && !/^(data|blob):/.test(url))).toEqual([]);
      } finally {
        page.removeAllListeners();
        await context?.close();
      }
    };
  });
// Starts the browser in a hook: the first start may install it.
test.beforeAll(({ visit: _ }) => undefined);

/**
 * The requested paths without digests, each once, the page first. The icon is always listed: a browser may not load it.
 */
function kindsOf([page = '', ...others]: readonly string[]): string[] {
  const paths = [page, ...others.toSorted()].map((url) => new URL(url).pathname.replace(/-[0-9a-f]{16}\./, '.'));
  return [...new Set([paths[0] ?? '', ...['/assets/icon.svg', ...paths.slice(1)].toSorted()])];
}

/** How many pixels the page is wider than the window. */
const overflow = (page: Page): Promise<number> =>
  page.locator('html').evaluate((html) => html.scrollWidth - html.clientWidth);

/** A property of the computed style. */
const styleOf = (page: Page, selector: string, property: string): Promise<string> =>
  page
    .locator(selector)
    .evaluate((element, name) => element.ownerDocument.defaultView.getComputedStyle(element)[name], property);

/** The texts whose contrast with their background is too low (WCAG 2.2, 1.4.3). */
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
    const backgroundOf = (element: typeof body): string => {
      if (!element) return 'rgb(255, 255, 255)';
      const { backgroundColor } = styleOf(element);
      return (numbers(backgroundColor)[3] ?? 1) === 0 ? backgroundOf(element.parentElement) : backgroundColor;
    };
    return Array.from<typeof body>(body.querySelectorAll('*'))
      .filter((element) =>
        Array.from<typeof body>(element.childNodes).some(
          (node) => node.nodeType === TEXT_NODE && node.textContent.trim() !== '',
        ),
      )
      .filter((element) => {
        const [text, background] = [luminance(styleOf(element).color), luminance(backgroundOf(element))];
        return (Math.max(text, background) + 0.05) / (Math.min(text, background) + 0.05) < 4.5;
      })
      .map((element) => String(element.textContent).trim());
  });
}

test.for(PLAIN_PAGES)(
  '%s fits any width, is readable in light and dark, and loads nothing from other servers',
  async (path, { visit }) => {
    await visit(path, undefined, async ({ page, requested }) => {
      expect(await page.locator('h1').count()).toBe(1);
      expect(await page.getByRole('note').textContent()).toContain('LOCAL SANDBOX: simulation only');
      // No color depends on the width, and no width on the color.
      for (const [colorScheme, viewport] of [
        ['dark', NARROW],
        ['light', WIDE],
      ] as const) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize(viewport);
        expect(await styleOf(page, 'body', 'backgroundColor')).toBe(BACKGROUND[colorScheme]);
        expect(await layoutFaults(page)).toEqual([]);
        expect(await faintTexts(page)).toEqual([]);
      }
      expect((await page.locator('header').boundingBox())?.height).toBeLessThan(60);
      expect(kindsOf(requested)).toEqual([path, '/assets/copy.js', '/assets/icon.svg', '/assets/style.css']);
    });
  },
);

test('the keyboard skips the navigation, and the focus is visible', async ({ visit, baseUrl }) => {
  await visit('/', undefined, async ({ page }) => {
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
    for (const text of ['Settlement service', 'Guides', 'Reference', 'Status']) {
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

test('the evidence of a capability opens by keyboard, without scripts', async ({ visit }) => {
  await visit('/status', { javaScriptEnabled: false, viewport: NARROW }, async ({ page }) => {
    const details = page.locator('td details').first();
    expect(await details.locator('li').first().isVisible()).toBe(false);
    await details.locator('summary').focus();
    await page.keyboard.press('Enter');
    expect(await details.locator('li').first().isVisible()).toBe(true);
    expect(await overflow(page)).toBe(0);
  });
});

test('an example is copied as it is written, by its button and by the keyboard', async ({ visit }) => {
  await visit('/docs/quickstart', { permissions: ['clipboard-read', 'clipboard-write'] }, async ({ page }) => {
    const example = page.locator('figure.code').first();
    await example.getByRole('button', { name: 'Copy' }).focus();
    await page.keyboard.press('Enter');
    await example.getByRole('button', { name: 'Copied' }).waitFor();
    const copied = await page
      .locator('html')
      .evaluate((html) => html.ownerDocument.defaultView.navigator.clipboard.readText());
    expect(copied).toBe(/```sh\n(.*?)\n```/s.exec(readSource('docs/guides/quickstart.md'))?.[1]);
    expect(await page.locator('figure.output button').count()).toBe(0);
    // Nothing scrolls, so no example is a stop of the Tab key or a landmark.
    await page.keyboard.press('Tab');
    expect(await page.locator('pre:focus').count()).toBe(0);
    expect(await page.getByRole('region').count()).toBe(0);
  });
});

test('an example is selected where the browser refuses to copy it', async ({ visit }) => {
  await visit('/docs/quickstart', undefined, async ({ page }) => {
    await page.locator('html').evaluate((html) => {
      const { clipboard } = html.ownerDocument.defaultView.navigator;
      clipboard.writeText = () => Promise.reject(new Error('refused'));
    });
    const example = page.locator('figure.code').first();
    await example.getByRole('button', { name: 'Copy' }).click();
    await example.getByRole('button', { name: 'Selected' }).waitFor();
  });
});

test('the reference shows its first content within a second, and fits a phone with all fields open', async ({
  visit,
  baseUrl,
}) => {
  await visit('/docs', { viewport: NARROW }, async ({ page, requested }) => {
    expect(kindsOf(requested)).toEqual(['/docs', '/assets/copy.js', '/assets/icon.svg', '/assets/style.css']);
    await page.getByRole('link', { name: 'Start a settlement', exact: true }).click();
    await page.getByRole('heading', { name: 'Start a settlement' }).waitFor();
    expect(await page.locator('pre').first().textContent()).toMatch(/^curl [\s\S]*\/v2\/settle[\s\S]*X-API-Key/);
    await page.locator('body').evaluate((body) => {
      for (const details of body.querySelectorAll('details')) details.open = true;
    });
    expect(await layoutFaults(page)).toEqual([]);
    /** The page may have loaded before it is painted. */
    const paintedAfterMs = async (): Promise<number> => {
      await page.goto(`${baseUrl}/docs/reference/webhooks`);
      const paint = await page.waitForFunction(
        (name) => performance.getEntriesByName(name)[0]?.startTime,
        'first-contentful-paint',
      );
      return Number(await paint.jsonValue());
    };
    // On a busy machine, one of several loads is fast enough.
    await expect.poll(paintedAfterMs).toBeLessThan(stretched(1_000));
    await page.getByRole('searchbox').fill('idempotency');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Safe retries', exact: true }).waitFor();
  });
});

describe('a certificate', () => {
  test('is one page without other requests, fits a phone and is readable in dark mode', async ({
    visit,
    baseUrl,
    partner,
    certificatePath,
  }) => {
    const options = { viewport: NARROW, extraHTTPHeaders: { 'x-api-key': partner.apiKey, accept: 'text/html' } };
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
        expect(await layoutFaults(page)).toEqual([]);
        expect(await faintTexts(page)).toEqual([]);
      }
      expect(requested.filter((url) => !url.endsWith('/favicon.ico'))).toEqual([`${baseUrl}${certificatePath}`]);
    });
  });
});
