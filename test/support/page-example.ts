/** The examples of a page of documentation: blocks of commands, each with the output that the page shows below it. */
import { execa } from 'execa';
import { expect } from 'vitest';
import { repositoryRoot } from '../../process/local/place.ts';
import { stretched } from './patience.ts';

export type Example = { readonly commands: string; readonly output: string };

/** Between the outputs of two blocks. */
const MARK = '---- next block ----';
const RUN_TIMEOUT_MS = stretched(110_000);

export const examplesOf = (markdown: string): Example[] =>
  [...markdown.matchAll(/```sh\n((?:(?!```).)*?)```\n\n```text\n(.*?)```/gs)].map(([, commands = '', output = '']) => ({
    commands,
    output,
  }));

/** Times, ids and digests differ in each run. */
const general = (output: string): string =>
  output
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replaceAll(/CERT-[0-9A-F]{32}/g, '<certificate>')
    .replaceAll(/stl_[a-z2-7]{32}/g, '<settlement>')
    .trim();

/** Runs the blocks in one Bash against this API, and compares each output with the one of the page. */
export async function expectExamples(examples: readonly Example[], baseUrl: string): Promise<void> {
  const script = examples.map(({ commands }) => `${commands}echo '${MARK}'`).join('\n');
  const { stdout, stderr, exitCode } = await execa(
    'bash',
    ['-eu', '-o', 'pipefail', '-c', script.replaceAll('http://127.0.0.1:3000', baseUrl)],
    { cwd: repositoryRoot, reject: false, timeout: RUN_TIMEOUT_MS },
  );
  expect(exitCode, `${stdout}\n${stderr}`).toBe(0);
  const outputs = stdout.split(MARK).slice(0, -1).map(general);
  expect(outputs).toEqual(examples.map(({ output }) => general(output)));
}
