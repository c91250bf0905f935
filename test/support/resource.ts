/** Asks the process that owns the shared servers for one of them. The first caller waits until the server runs. */
import { get } from 'node:http';
import { inject } from 'vitest';
import { z } from 'zod';

const Failure = z.object({ error: z.string() });

/** Without fetch, which gives up after five minutes without an answer. */
export async function sharedResource<Shape extends z.ZodType>(name: string, shape: Shape): Promise<z.output<Shape>> {
  endWithTheRun();
  const { status, body } = await new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
    get(`${inject('resources')}/${name}`, (response) => {
      const parts: string[] = [];
      response.setEncoding('utf8');
      response.on('data', (part: string) => parts.push(part));
      response.on('end', () => resolve({ status: response.statusCode, body: parts.join('') }));
    }).on('error', reject);
  });
  if (status === 200) return shape.parse(JSON.parse(body));
  throw new Error(Failure.parse(JSON.parse(body)).error);
}

/** Ends this process when the run is killed, with everything that it started. */
function endWithTheRun(): void {
  if (process.listenerCount('disconnect', exit) === 0) process.on('disconnect', exit);
}

const exit = (): void => process.exit(1);
