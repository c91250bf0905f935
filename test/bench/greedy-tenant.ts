/**
 * The greedy tenant of `shares`, and the endpoint of its subscriptions, in a process of their own: the tenant that is
 * measured beside it must not wait in its queue. It prepares at `/prepare`, and loops from `/begin` to `/end`.
 */
import { startHttpServer } from '../support/http-server.ts';
import { openCallers } from './greedy.ts';
import { PROBES, type Step } from './probe.ts';

const NO_CONTENT = 204;

const probe = Number(process.env['PROBE']);
const connections = Number(process.env['CONNECTIONS']);
const callers = openCallers(`http://127.0.0.1:${process.env['PORT']}`, connections, probe);
const endpoint = await startHttpServer((response) => response.writeHead(NO_CONTENT).end());
let step: Step | undefined;
let greed: ReturnType<typeof loop> | undefined;

const actions: Readonly<Record<string, () => unknown>> = {
  '/prepare': async () => {
    step = await PROBES[probe]?.prepare(callers, `${endpoint.url}/`);
  },
  '/begin': () => {
    if (!step) throw new Error('nothing is prepared');
    greed = loop(step);
  },
  '/end': () => greed?.stop(),
};

const control = await startHttpServer(async (response, { path }) => {
  try {
    const answer = await actions[path]?.();
    response.end(JSON.stringify(answer ?? null));
  } catch (error) {
    response.writeHead(500).end(String(error));
  }
});

console.log(`the greedy tenant listens at ${control.url} for the benchmark`);

/** Repeats requests as fast as they are answered, refused or not. */
function loop(step: Step) {
  const startedMs = performance.now();
  let isOver = false;
  let next = 0;
  let accepted = 0;
  let refused = 0;
  const lane = async (): Promise<void> => {
    while (!isOver) {
      const { status } = await step(next++);
      if (status > 299) refused += 1;
      else accepted += 1;
    }
  };
  const lanes = Promise.all(Array.from({ length: connections }, lane));
  return {
    stop: async () => {
      isOver = true;
      await lanes;
      const seconds = (performance.now() - startedMs) / 1_000;
      return { accepted: accepted / seconds, refused: refused / seconds };
    },
  };
}
