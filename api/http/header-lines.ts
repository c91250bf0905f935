/**
 * Header lines as they were sent. Node joins repeated headers or drops all but one; only the raw list shows how many
 * lines were sent.
 */
import type { IncomingMessage } from 'node:http';

/** @param name in lower case */
export function headerLines({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>, name: string): string[] {
  return rawHeaders.flatMap((sent, index) =>
    index % 2 === 0 && sent.toLowerCase() === name ? [rawHeaders[index + 1] ?? ''] : [],
  );
}
