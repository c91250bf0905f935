/**
 * Prints a story over HTTP: each sentence, each request with its answer, and each comparison with the documentation.
 */
import { isDeepStrictEqual, styleText } from 'node:util';
import type { ClientOptions } from '../../clients/typescript/index.ts';

export type Narrator = {
  /** Begins a chapter. `why` says what it is good for, or what to look at. */
  say(sentence: string, why?: string): void;
  show(line: string): void;
  /** For a client whose requests and answers are printed. */
  readonly connection: ClientOptions;
  /** The text of the answer that was printed last. */
  answered(): string;
  /** @throws Error when the value is not the expected one */
  check(what: string, actual: unknown, expected: unknown): void;
};

/**
 * A service that has answered may be away for about two seconds. One that never has is given up after three attempts.
 */
const ATTEMPTS_MAX = 5;

export function createNarrator(baseUrl: string): Narrator {
  let chapter = 0;
  let answered = '';
  const fetchPrinted: typeof fetch = async (url, init) => {
    printRequest(String(url).slice(baseUrl.length), init);
    const response = await fetch(url, init);
    answered = await response.clone().text();
    printAnswer(response.status, answered);
    return response;
  };
  return {
    say: (sentence, why) => {
      chapter += 1;
      console.log(`\n${styleText(['bold', 'cyan'], `${chapter}. ${sentence}`)}`);
      if (why !== undefined) console.log(styleText('italic', `   ${why}`));
    },
    show: (line) => console.log(`  ${line}`),
    connection: {
      baseUrl,
      fetch: fetchPrinted,
      attemptsMax: ATTEMPTS_MAX,
      onRetry: ({ error, waitMs }) =>
        console.log(styleText('dim', `  ${error.message} Next attempt in ${(waitMs / 1_000).toFixed(1)} s.`)),
    },
    answered: () => answered,
    check: (what, actual, expected) => {
      if (!isDeepStrictEqual(actual, expected))
        throw new Error(`${what}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}.`);
      console.log(styleText('green', `  as documented: ${what}`));
    },
  };
}

/** Headers that every request has, and the key. `Headers` gives names in lower case. */
const NOT_PRINTED = ['accept', 'content-type', 'x-api-key'];

function printRequest(path: string, { method, headers, body }: RequestInit = {}): void {
  console.log(styleText('bold', `${method} ${path}`));
  for (const [name, value] of new Headers(headers))
    if (!NOT_PRINTED.includes(name)) console.log(styleText('dim', `  ${name}: ${value}`));
  if (typeof body === 'string') console.log(styleText('dim', pretty(JSON.parse(body))));
}

function printAnswer(status: number, text: string): void {
  console.log(styleText(status < 300 ? 'green' : 'yellow', String(status)));
  if (text !== '') console.log(pretty(withoutSecrets(JSON.parse(text))));
}

const pretty = (json: unknown): string => JSON.stringify(json, null, 2).replace(/^/gm, '  ');

/** Terminals are often recorded, so only the beginning of a key is printed. */
const withoutSecrets = (json: { readonly api_key?: string }): object =>
  json.api_key === undefined ? json : { ...json, api_key: `${json.api_key.slice(0, 12)}… (shown by this answer only)` };
