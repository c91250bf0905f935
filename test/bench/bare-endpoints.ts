/**
 * The endpoints of the organizations under load, in a process of their own: a tenant that is measured beside them must
 * not wait in their queue. Some never answer, until a request to `/release`.
 */
import { startReceiver } from './receiver.ts';

let release = (): void => undefined;
const released = new Promise<void>((resolve) => {
  release = resolve;
});

const healthy = await startReceiver(async ({ path }) => {
  if (path === '/release') release();
  return 204;
});
// A host of its own: the requests to one host are limited together.
const hanging = await startReceiver(async () => {
  await released;
  return 204;
});

console.log(`endpoints at ${healthy.base} and ${hanging.base} for the benchmark`);
