/** Programs that commands of the tests build with Go, since there is no finished download of them. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { localDirectory } from '../../process/local/place.ts';

const BUILD_TIMEOUT_MS = 900_000;

/**
 * The path of the program, which is built once for each clone.
 *
 * @param source the Go package, whose last word is the name of the program
 * @param version as Go writes it: `v1.32.0`
 * @param name the folder of `.local/bin` that keeps it
 * @throws Error when there is no Go, or it cannot build the program
 */
export async function buildWithGo(
  { source, version, name }: { readonly source: string; readonly version: string; readonly name: string },
  signal?: AbortSignal,
): Promise<string> {
  const directory = path.join(localDirectory, 'bin', `${name}-${version}`);
  const program = path.join(directory, path.basename(source));
  if (existsSync(program)) return program;
  await mkdir(directory, { recursive: true });
  const env = { ...process.env, GOBIN: directory };
  await promisify(execFile)('go', ['install', `${source}@${version}`], { env, timeout: BUILD_TIMEOUT_MS, signal });
  return program;
}
