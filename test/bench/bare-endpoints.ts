/**
 * The endpoints of the organizations under load, in a process of their own: a tenant that is measured beside them must
 * not wait in their queue. Some never answer, until a request to `/release`.
 */
import { startReceiver } from './receiver.ts';

let release = (): void => undefined;
const released = new Promise<void>((resolve) => {
  release = resolve;
});

const { base } = await startReceiver(async ({ path }) => {
  if (path === '/release') release();
  if (path.startsWith('/hanging/')) await released;
  return 204;
});

console.log(`endpoints at ${base} for the benchmark`);
