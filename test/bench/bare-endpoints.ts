/**
 * The endpoints of the organizations under load, in a process of their own: a tenant that is measured beside them must
 * not wait in their queue. Some never answer, until a request to `/release`.
 */
import type { ServerResponse } from 'node:http';
import { startHttpServer } from '../support/http-server.ts';

const NO_CONTENT = 204;
const held: ServerResponse[] = [];
let isReleased = false;
const accept = (response: ServerResponse) => response.writeHead(NO_CONTENT).end();

const healthy = await startHttpServer((response, { path }) => {
  accept(response);
  if (path !== '/release') return;
  isReleased = true;
  held.splice(0).forEach(accept);
});
// A host of its own: the requests to one host are limited together.
const hanging = await startHttpServer((response) => (isReleased ? accept(response) : held.push(response)));

console.log(`endpoints at ${healthy.url} and ${hanging.url} for the benchmark`);
