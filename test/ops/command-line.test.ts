/** The command line that operators, the sandbox and the benchmarks share. */
import path from 'node:path';
import { execa } from 'execa';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  file,
  flag,
  oneOf,
  optional,
  repeatable,
  required,
  text,
  wholeNumber,
  withDefault,
} from '../../ops/command-line/parameter.ts';
import { CommandError, command, EXIT, group, type Printer, runProgram } from '../../ops/command-line/program.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { testPrograms } from '../support/program.ts';
import { readSource } from '../support/source.ts';

const systemError = Object.assign(new Error("ENOSPC: no space left on device, open '/x'"), { code: 'ENOSPC' });

const send = command({
  name: 'send',
  description: 'Sends a parcel.',
  takes: {
    parcel: required('<parcel>', 'the parcel', oneOf(['letter', 'box'])),
    place: optional('<place>', 'where it goes', text),
    weight: withDefault('--weight <grams>', 'its weight', wholeNumber(1, 1_000), '20'),
    labels: repeatable('--label <word>', 'a label', text),
    isExpress: flag('--express', 'by air'),
    note: required('--note <why>', 'the reason', text),
  },
  check: ({ isExpress, weight }) => (isExpress && weight === 1_000 ? ['--express takes less than 1000 grams.'] : []),
  run: async ({ print, printData, warn }: Printer, values) => {
    if (values.note === 'refuse') throw new CommandError(EXIT.refused, 'The parcel was refused.');
    if (values.note === 'write') throw systemError;
    if (values.note === 'crash') throw new Error('the parcel burst');
    warn('sending');
    print(`sent ${values.parcel}`);
    printData(values);
    return EXIT.done;
  },
});
const nested = group<Printer>('van', 'A van.', [
  command({ name: 'park', description: 'Parks it.', takes: {}, run: async () => EXIT.done }),
]);
const program = group<Printer>('post', 'Sends parcels.', [send, nested]);

async function run(...args: string[]) {
  const [printed, warned]: [string[], string[]] = [[], []];
  const output = { print: (line: string) => printed.push(line), warn: (line: string) => warned.push(line) };
  let provided = 0;
  const exitCode = await runProgram(program, args, output, (act, printer) => {
    provided += 1;
    return act(printer);
  });
  return { exitCode, printed, warned, provided };
}

test('a relative file name begins in the folder where npm was called, and without npm in the working directory', () => {
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv('INIT_CWD', '/home/ana');
  expect(['a.csv', '../a.csv', '/tmp/a.csv', ' '].map(file.read)).toEqual([
    { value: '/home/ana/a.csv' },
    { value: '/home/a.csv' },
    { value: '/tmp/a.csv' },
    { fault: 'is required.' },
  ]);
  vi.stubEnv('INIT_CWD', undefined);
  expect(file.read('a.csv')).toEqual({ value: path.resolve('a.csv') });
});

test('each parameter gets its value', async () => {
  const args = ['send', ' box', '--weight', '7', '--label', 'a', '--label=b', '--express', '--note', ' why '];
  const { warned } = await run(...args);
  expect(warned).toEqual(['<parcel> must be one of letter, box.', 'See npm run post -- send --help']);
  const { exitCode, printed } = await run('send', 'box', ...args.slice(2), '--json');
  expect(exitCode).toBe(0);
  const values = { parcel: 'box', weight: 7, labels: ['a', 'b'], isExpress: true, note: 'why' };
  expect(printed.map((line) => JSON.parse(line))).toEqual([values]);
});

test('the least allowed value of an option is accepted', async () => {
  const { printed } = await run('send', 'box', '--weight', '1', '--note', 'why', '--json');
  expect(JSON.parse(printed[0] ?? '')).toMatchObject({ weight: 1 });
});

test('a parameter that is not given has its default', async () => {
  const { printed } = await run('send', 'box', '--note', 'why', '--json');
  expect(JSON.parse(printed[0] ?? '')).toEqual({
    parcel: 'box',
    weight: 20,
    labels: [],
    isExpress: false,
    note: 'why',
  });
});

test('lines for people and JSON never mix, and messages go to stderr in both', async () => {
  expect(await run('send', 'box', '--note', 'why')).toMatchObject({ printed: ['sent box'], warned: ['sending'] });
  const { printed, warned } = await run('send', 'box', '--note', 'why', '--json');
  expect([printed.length, warned]).toEqual([1, ['sending']]);
});

describe('a wrong command line exits with 2, names the fault and the help, and runs nothing:', () => {
  test.for<[string, string[], string[]]>([
    ['an unknown command', ['snd'], ["Unknown command 'snd'. (Did you mean send?)", 'See npm run post -- --help']],
    [
      'a parameter that is given twice, of which one would be ignored',
      ['send', 'box', '--weight', '9', '--note', 'why', '--weight=1', '--note', 'why'],
      ['--weight is given twice.', '--note is given twice.', 'See npm run post -- send --help'],
    ],
    ['an unknown nested command', ['van', 'drive'], ["Unknown command 'drive'.", 'See npm run post -- van --help']],
    [
      'an unknown option',
      ['send', 'box', '--colour', 'red'],
      ["Unknown option '--colour'.", 'See npm run post -- send --help'],
    ],
    [
      'too many arguments',
      ['van', 'park', 'here'],
      ["Too many arguments for 'park'. Expected 0 arguments but got 1.", 'See npm run post -- van park --help'],
    ],
    [
      'an option whose value is missing at the end',
      ['send', 'box', '--note'],
      ["Option '--note <why>' argument missing.", 'See npm run post -- send --help'],
    ],
    [
      'an option whose value is missing before another option',
      ['send', 'box', '--note', '--express'],
      ['--note needs a value.', 'See npm run post -- send --help'],
    ],
    [
      'a rule across options',
      ['send', 'box', '--note', 'why', '--express', '--weight', '1000'],
      ['--express takes less than 1000 grams.', 'See npm run post -- send --help'],
    ],
    [
      'several faults at once',
      ['send', 'bag', '--weight', '1.5', '--label', '', '--note', ' '],
      [
        '<parcel> must be one of letter, box.',
        '--weight must be a whole number from 1 to 1000.',
        '--label is required.',
        '--note is required.',
        'See npm run post -- send --help',
      ],
    ],
  ])('%s', async ([, args, warned]) => {
    expect(await run(...args)).toEqual({ exitCode: 2, printed: [], warned, provided: 0 });
  });

  test.for([[[]], [['van']]])('%j shows the help on stderr', async ([args = []]) => {
    const { exitCode, printed, warned, provided } = await run(...args);
    expect([exitCode, printed, provided]).toEqual([2, [], 0]);
    expect(warned.join('\n')).toContain(`Usage: ${['npm run post --', ...args].join(' ')} [options] [command]`);
  });
});

test('an expected failure exits with its code and prints its message alone', async () => {
  expect(await run('send', 'box', '--note', 'refuse')).toMatchObject({
    exitCode: 1,
    printed: [],
    warned: ['The parcel was refused.'],
  });
});

test('a full disk is no fault of the program: 69, and the message names the file', async () => {
  expect(await run('send', 'box', '--note', 'write')).toMatchObject({
    exitCode: 69,
    warned: ["The system refuses it: ENOSPC: no space left on device, open '/x'."],
  });
});

test('an unexpected error exits with 70 and prints its place in one line', async () => {
  const { exitCode, warned } = await run('send', 'box', '--note', 'crash');
  expect(exitCode).toBe(70);
  expect(warned).toEqual([
    expect.stringMatching(
      /^Unexpected error, a fault of this program: Error: the parcel burst \(at .*command-line\.test/,
    ),
  ]);
});

test('--help shows the usage, the choices and the defaults; --version the version of the service', async () => {
  const { exitCode, printed, provided } = await run('send', '--help');
  expect([exitCode, provided]).toEqual([0, 0]);
  const help = printed.join('\n');
  expect(help).toContain(
    'Usage: npm run post -- send <parcel> [place] [--weight <grams>] [--label <word>] [--express] --note <why> [--json]',
  );
  expect(help).toContain('(choices: "letter", "box")');
  expect(help).toContain('(default: 20)');
  const { version } = JSON.parse(readSource('package.json'));
  expect((await run('--version')).printed).toEqual([version]);
});

test('docs/operations.md explains exactly these exit codes', () => {
  const [, table = ''] = readSource('docs/operations.md').split('| exit code | meaning |');
  const codes = [...(table.split('\n## ')[0] ?? '').matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  expect(codes).toEqual(Object.values(EXIT));
});

describe('the process', () => {
  const start = (...args: string[]) =>
    execa(process.execPath, ['--import', 'tsx', ...args], {
      cwd: repositoryRoot,
      env: { PATH: process.env['PATH'] ?? '', NODE_NO_WARNINGS: '1' },
      extendEnv: false,
      reject: false,
    });

  test('an invalid configuration exits with 78, without a stack trace', async () => {
    const { exitCode, stdout, stderr } = await start('ops/migrate.ts');
    expect([exitCode, stdout]).toEqual([78, '']);
    expect(stderr).toContain('DATABASE_URL is required');
    expect(stderr).not.toContain('    at ');
  });

  test('an output that nobody reads ends without an error', async () => {
    const { ops } = await testPrograms();
    const { stderr } = await execa('bash', [
      '-c',
      '("$0" "$1" --help; echo "exit $?" >&2) | true',
      process.execPath,
      ops,
    ]);
    expect(stderr).toBe('exit 0');
  });
});
