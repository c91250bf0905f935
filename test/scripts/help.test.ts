import { execa } from 'execa';
import { test as base, expect } from 'vitest';
import { z } from 'zod';
import { repositoryRoot } from '../../process/local/place.ts';
import { FILE } from '../support/fixture.ts';
import { readSource } from '../support/source.ts';

/** Every program of package.json that a person runs with options; not the services, which take none. */
const PROGRAMS = [
  ...['start', 'dev', 'reset', 'demo', 'sandbox', 'ops', 'codec', 'migrate', 'newcomer', 'generate', 'record-history'],
  ...['verify-certificate', 'bench', 'cluster', 'drill', 'explore', 'fuzz', 'torture'],
];

const WRONG = [
  ['demo', ['--scenario', 'unknown'], '--scenario must be one of all, '],
  ['cluster', ['--settlements', '3'], '--settlements must be a whole number from 50 to 1000000.'],
  ['fuzz', ['--minutes', 'many'], '--minutes must be a number above 0.'],
  ['start', ['--fast'], "Unknown option '--fast'."],
] as const;

const { scripts }: { scripts: Record<string, string> } = JSON.parse(readSource('package.json'));

const Ended = z.array(z.object({ exitCode: z.number(), stdout: z.string(), stderr: z.string() }));

/**
 * All of them in one process, without a stack and without configuration. It ends by itself, because no command keeps
 * running.
 */
const test = base.extend('ended', FILE, async () => {
  const commandLines = [
    ...PROGRAMS.map((name) => [name, '--help'] as const),
    ...WRONG.map(([name, options]) => [name, ...options] as const),
  ];
  const files = commandLines.map(([name, ...args]) => [/\S+\.ts/.exec(scripts[name] ?? '')?.[0], ...args]);
  const { stdout } = await execa('node', ['--import', 'tsx', 'test/fixtures/programs.ts', JSON.stringify(files)], {
    cwd: repositoryRoot,
    env: { PATH: process.env['PATH'] ?? '', HOME: repositoryRoot },
    extendEnv: false,
  });
  const ended = Ended.parse(JSON.parse(stdout));
  return new Map(ended.map((end, index) => [commandLines[index]?.join(' '), end]));
});

test.for(PROGRAMS)(
  'npm run %s -- --help prints how to use it, does nothing else, and exits with 0',
  (name, { ended }) => {
    const { stdout = '', ...end } = ended.get(`${name} --help`) ?? {};
    expect(end).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout.split('\n')[0]).toContain(`Usage: npm run ${name} -- `);
  },
);

test.for(WRONG)(
  'npm run %s -- %j is a sentence, a pointer to --help, and exit code 2',
  ([name, options, sentence], { ended }) => {
    const { exitCode, stderr } = ended.get([name, ...options].join(' ')) ?? {};
    expect(exitCode).toBe(2);
    expect(stderr).toContain(sentence);
    expect(stderr).toContain(`See npm run ${name} -- --help`);
  },
);
