/**
 * Prints a story over HTTP: each sentence, each request with its answer, and each comparison with the documentation.
 */
import { isDeepStrictEqual, styleText } from 'node:util';
import { type ApiRequest, type Client, createClient, type Reply, requireStatus } from '../partner/client.ts';

export type Narrator = {
  /** Begins a chapter. `why` says what it is good for, or what to look at. */
  say(sentence: string, why?: string): void;
  show(line: string): void;
  /** Prints the request and its answer, whatever its status. Throws when the status is not the expected one. */
  call: Client['call'];
  /** @throws Error when the value is not the expected one */
  check(what: string, actual: unknown, expected: unknown): void;
  close(): Promise<void>;
};

export function createNarrator(baseUrl: string): Narrator {
  let chapter = 0;
  const client = createClient({
    baseUrl: () => baseUrl,
    onRetry: (reason, waitMs) => console.log(styleText('dim', `  ${reason}; next attempt in ${waitMs / 1_000} s`)),
  });
  return {
    say: (sentence, why) => {
      chapter += 1;
      console.log(`\n${styleText(['bold', 'cyan'], `${chapter}. ${sentence}`)}`);
      if (why !== undefined) console.log(styleText('italic', `   ${why}`));
    },
    show: (line) => console.log(`  ${line}`),
    call: async (asked) => {
      printRequest(asked);
      const answer = await client.send(asked);
      printAnswer(answer);
      return requireStatus(asked, answer);
    },
    check: (what, actual, expected) => {
      if (!isDeepStrictEqual(actual, expected))
        throw new Error(`${what}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}.`);
      console.log(styleText('green', `  as documented: ${what}`));
    },
    close: () => client.close(),
  };
}

function printRequest({ method, path, idempotencyKey, headers, body }: ApiRequest): void {
  console.log(styleText('bold', `${method} ${path}`));
  const shown = { ...(idempotencyKey !== undefined && { 'Idempotency-Key': idempotencyKey }), ...headers };
  for (const [name, value] of Object.entries(shown)) console.log(styleText('dim', `  ${name}: ${value}`));
  if (body !== undefined) console.log(styleText('dim', indent(JSON.stringify(body, null, 2))));
}

function printAnswer({ status, json }: Reply): void {
  const color = status < 300 ? 'green' : 'yellow';
  console.log(`${styleText(color, String(status))}\n${indent(JSON.stringify(withoutSecrets(json), null, 2))}`);
}

const indent = (text: string): string => text.replace(/^/gm, '  ');

/** Terminals are often recorded, so only the beginning of a key is printed. */
function withoutSecrets(json: Reply['json']): Reply['json'] {
  const key = json['api_key'];
  return typeof key === 'string' ? { ...json, api_key: `${key.slice(0, 12)}… (shown once)` } : json;
}
