/** The interface against requests that somebody else's program made of the document alone; `npm run fuzz` looks longer. */
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { localDirectory } from '../../process/place.ts';
import { acquireSchemathesis, type PythonProgram } from '../fuzz/python.ts';
import { fuzz } from '../fuzz/schemathesis.ts';
import { startStack, type TestStack } from '../support/stack.ts';

const INSTALL_TIMEOUT_MS = 600_000;
const FUZZ_SECONDS = 20;
const FUZZ_TIMEOUT_MS = 240_000;

let python: PythonProgram;
let stack: TestStack;

beforeAll(async () => {
  python = await acquireSchemathesis(path.join(localDirectory, 'fuzz'), () => undefined);
  stack = await startStack();
}, INSTALL_TIMEOUT_MS);
afterAll(() => stack.close());

test(
  'every answer to a generated request is one that the document promises, and none is a 5xx',
  async () => {
    const lines: string[] = [];
    const passed = await fuzz({
      python,
      baseUrl: stack.baseUrl,
      seconds: FUZZ_SECONDS,
      seed: 1,
      maxExamples: 8,
      obeysRateLimit: false,
      print: (line) => lines.push(line),
    });
    if (!passed) throw new Error(lines.join('\n'));
    expect(lines.join('\n')).toMatch(/Operations|operations/);
  },
  FUZZ_TIMEOUT_MS,
);
