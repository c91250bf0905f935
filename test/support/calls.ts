/** Which functions of the sources were called, as V8 counts it. */
import { Session } from 'node:inspector/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { repositoryRoot } from '../../process/local/place.ts';

/** @returns ends the count, and returns the names of the functions that were called, by the path of their file */
export async function countCalls(): Promise<() => Promise<ReadonlyMap<string, ReadonlySet<string>>>> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  return async () => {
    const { result } = await session.post('Profiler.takePreciseCoverage');
    await session.post('Profiler.stopPreciseCoverage');
    session.disconnect();
    const called = new Map<string, Set<string>>();
    for (const { url, functions } of result) {
      const file = path.relative(repositoryRoot, url.startsWith('file:') ? fileURLToPath(url) : url);
      const names = called.get(file) ?? new Set();
      called.set(file, names);
      for (const { functionName, ranges } of functions) if ((ranges[0]?.count ?? 0) > 0) names.add(functionName);
    }
    return called;
  };
}
