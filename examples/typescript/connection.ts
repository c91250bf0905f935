/** Where the examples find the service: `API` and `API_KEY`, as in the README. */

export const baseUrl = process.env['API'] ?? 'http://127.0.0.1:3000';

/** Of an example that needs a key: without one, it ends with a sentence. */
export function connection(): { baseUrl: string; apiKey: string } {
  const apiKey = process.env['API_KEY'];
  if (apiKey) return { baseUrl, apiKey };
  console.error("Set API_KEY to a key of yours, as in the README's five minutes.");
  process.exit(1);
}
