import { readFileSync } from 'node:fs';
import path from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { repositoryRoot } from '../../process/place.ts';

/** Every program of package.json that a person runs with options; not the services, which take none. */
const PROGRAMS = [
  ...[
    'start',
    'dev',
    'reset',
    'demo',
    'sandbox',
    'ops',
    'codec',
    'migrate',
    'newcomer',
    'generate',
    'record-history',
    'verify-certificate',
  ],
  ...['bench', 'cluster', 'drill', 'fuzz', 'record', 'screenshots', 'timing'],
];

const { scripts }: { scripts: Record<string, string> } = JSON.parse(
  readFileSync(path.join(repositoryRoot, 'package.json'), 'utf8'),
);

/** The environment of a machine that runs no stack and has no configuration. */
const env = { PATH: process.env['PATH'] ?? '', HOME: repositoryRoot };

test.each(PROGRAMS)(
  'npm run %s -- --help prints how to use it, does nothing else, and exits with 0',
  async (name) => {
    const [file = ''] = /\S+\.ts/.exec(scripts[name] ?? '') ?? [];
    const args = ['--import', 'tsx', file, '--help'];
    const { exitCode, stdout, stderr } = await execa('node', args, {
      cwd: repositoryRoot,
      env,
      extendEnv: false,
      reject: false,
    });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout.split('\n')[0]).toContain(`Usage: npm run ${name} -- `);
  },
  40_000,
);

test.each([
  ['demo', ['--scenario', 'unknown'], '--scenario must be one of all, '],
  ['cluster', ['--settlements', '3'], '--settlements must be a whole number from 50 to 1000000.'],
  ['fuzz', ['--minutes', 'many'], '--minutes must be a number above 0.'],
  ['start', ['--fast'], "Unknown option '--fast'."],
])(
  'npm run %s -- %j is a sentence, a pointer to --help, and exit code 2',
  async (name, options, sentence) => {
    const [file = ''] = /\S+\.ts/.exec(scripts[name] ?? '') ?? [];
    const args = ['--import', 'tsx', file, ...options];
    const { exitCode, stderr } = await execa('node', args, {
      cwd: repositoryRoot,
      env,
      extendEnv: false,
      reject: false,
    });
    expect(exitCode).toBe(2);
    expect(stderr).toContain(sentence);
    expect(stderr).toContain(`See npm run ${name} -- --help`);
  },
  40_000,
);
