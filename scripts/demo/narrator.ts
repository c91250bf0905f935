/** Tells a story over HTTP: says what comes, makes the request, prints the answer, and compares it with the promise. */
import { isDeepStrictEqual, styleText } from 'node:util';

export type Reply = {
  readonly status: number;
  readonly headers: Headers;
  /** The exact body. */
  readonly text: string;
  /** The body read as JSON. */
  readonly json: Record<string, unknown>;
};

export type Call = {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly apiKey?: string;
  readonly headers?: Record<string, string>;
  readonly body?: Record<string, unknown>;
  readonly expectStatus: number;
};

export type Narrator = {
  say(sentence: string): void;
  call(call: Call): Promise<Reply>;
  /** @throws Error when the value is not what was promised */
  promise(what: string, actual: unknown, expected: unknown): void;
};

const REQUEST_TIMEOUT_MS = 40_000;

export function createNarrator(baseUrl: string): Narrator {
  let chapter = 0;
  return {
    say: (sentence) => {
      chapter += 1;
      console.log(`\n${styleText(['bold', 'cyan'], `${chapter}. ${sentence}`)}`);
    },
    call: async ({ method, path, apiKey, headers = {}, body, expectStatus }) => {
      const sent = {
        ...(apiKey === undefined ? {} : { 'X-API-Key': apiKey }),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      };
      console.log(styleText('bold', `${method} ${path}`));
      for (const [name, value] of Object.entries(headers)) console.log(styleText('dim', `  ${name}: ${value}`));
      if (body !== undefined) console.log(styleText('dim', indent(JSON.stringify(body, null, 2))));
      const answer = await fetch(`${baseUrl}${path}`, {
        method,
        headers: sent,
        signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      const json: Record<string, unknown> = JSON.parse(text);
      console.log(
        `${styleText(answer.ok ? 'green' : 'yellow', String(answer.status))}\n${indent(JSON.stringify(withoutSecrets(json), null, 2))}`,
      );
      if (answer.status !== expectStatus)
        throw new Error(`${method} ${path} answered ${answer.status}, not ${expectStatus}.`);
      return { status: answer.status, headers: answer.headers, text, json };
    },
    promise: (what, actual, expected) => {
      if (!isDeepStrictEqual(actual, expected))
        throw new Error(`${what}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}.`);
      console.log(styleText('green', `  as promised: ${what}`));
    },
  };
}

const indent = (text: string): string => text.replace(/^/gm, '  ');

/** A terminal is recorded easily: of a secret only its beginning is printed. */
function withoutSecrets(json: Record<string, unknown>): Record<string, unknown> {
  const key = json['api_key'];
  return typeof key === 'string' ? { ...json, api_key: `${key.slice(0, 12)}… (shown once)` } : json;
}
