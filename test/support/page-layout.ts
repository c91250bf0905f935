/** What a reader must not see on a page, whatever its width: seen by the browser that laid it out. */
import type { Page } from 'playwright-core';

/** Each fault in words: the page is wider than the window, a word is broken inside, or code is cut. */
export const layoutFaults = (page: Page): Promise<string[]> =>
  page.locator('body').evaluate((body) => {
    const { document } = { document: body.ownerDocument };
    const faults: string[] = [];
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth > clientWidth) faults.push(`${scrollWidth - clientWidth} pixels wider than the window`);
    for (const code of body.querySelectorAll('pre, table, .picture'))
      if (code.scrollWidth > code.clientWidth + 1) faults.push(`cut: ${code.textContent.trim().slice(0, 60)}`);
    const SHOW_TEXT = 4;
    const texts = document.createTreeWalker(body, SHOW_TEXT);
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      if (node.parentElement.closest('.digest, script, style')) continue;
      // An id is no word: it breaks where its line ends.
      for (const { 0: word, index } of node.textContent.matchAll(
        /(?<![\p{L}\p{N}_])[\p{L}\p{N}_]{2,28}(?![\p{L}\p{N}_])/gu,
      )) {
        const range = document.createRange();
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        const tops = Array.from<{ top: number; width: number }>(range.getClientRects())
          .filter(({ width }) => width > 0)
          .map(({ top }) => Math.round(top));
        if (new Set(tops).size > 1) faults.push(`broken: ${word}`);
      }
    }
    return faults;
  });
