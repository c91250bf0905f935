/**
 * Header lines as they were sent. Node joins repeated headers or drops all but one; only the raw list shows how many
 * lines were sent.
 */
import type { IncomingMessage } from 'node:http';

/** @param name in lower case */
export function headerLines({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>, name: string): string[] {
  const lines: string[] = [];
  // A loop over names and values in turn, because every request reads several headers.
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const sent = rawHeaders[index];
    if (sent?.length === name.length && sent.toLowerCase() === name) lines.push(rawHeaders[index + 1] ?? '');
  }
  return lines;
}
