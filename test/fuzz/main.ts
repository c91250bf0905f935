/** `npm run fuzz`: Schemathesis tests every operation of the API. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { positiveNumber, type ValuesOf, wholeNumber, withDefault } from '../../ops/command-line/parameter.ts';
import {
  CommandError,
  command,
  EXIT,
  type Printer,
  runProgram,
  standardOutput,
} from '../../ops/command-line/program.ts';
import { localDirectory } from '../../process/local/place.ts';
import { API_URL } from '../../scripts/sandbox/command.ts';
import { borrowStack } from '../../scripts/stack/borrowed.ts';
import { acquireSchemathesis, fuzz } from './schemathesis.ts';

const SECONDS_PER_MINUTE = 60;

const Secrets = z.object({
  CARDPROC_WEBHOOK_SECRET: z.string(),
  BANKLEDGER_WEBHOOK_SECRET: z.string(),
  IDVERIFY_WEBHOOK_SECRET: z.string(),
});

/** The secrets that the stack of this clone made for itself. */
function readSecrets() {
  const secrets = Secrets.parse(JSON.parse(readFileSync(path.join(localDirectory, 'sandbox-secrets.json'), 'utf8')));
  return {
    cardproc: secrets.CARDPROC_WEBHOOK_SECRET,
    bankledger: secrets.BANKLEDGER_WEBHOOK_SECRET,
    idverify: secrets.IDVERIFY_WEBHOOK_SECRET,
  };
}

const TAKES = {
  minutes: withDefault('--minutes <n>', 'how long it tests', positiveNumber, '5'),
  seed: withDefault('--seed <n>', 'the same seed sends the same requests', wholeNumber(0, 2 ** 31), '1'),
  url: API_URL,
};

const program = command({
  name: 'fuzz',
  description: 'Sends requests made from the OpenAPI document. Exits with 1 when an answer is not as documented.',
  takes: TAKES,
  json: false,
  run: async ({ print }: Printer, { minutes, seed, url }: ValuesOf<typeof TAKES>) => {
    const python = await acquireSchemathesis(print).catch((error: unknown) => {
      throw new CommandError(EXIT.unavailable, error instanceof Error ? error.message : String(error));
    });
    const stack = await borrowStack(url, print);
    try {
      const seconds = Math.ceil(minutes * SECONDS_PER_MINUTE);
      const { baseUrl, isOwn } = stack;
      const secrets = url === undefined ? readSecrets() : {};
      const passed = await fuzz({
        python,
        baseUrl,
        seconds,
        seed,
        isEndless: true,
        obeysRateLimit: !isOwn,
        secrets,
        print,
      });
      const repeat = `npm run fuzz -- --minutes ${minutes} --seed ${seed}`;
      print(
        passed
          ? '\nEvery answer is as documented.'
          : `\nSome answers are not as documented. Repeat this run with: ${repeat}`,
      );
      return passed ? EXIT.done : EXIT.refused;
    } finally {
      await stack.giveBack();
    }
  },
});

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) => act(printer));
