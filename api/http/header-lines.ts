/**
 * Header lines as they were sent. Node joins or drops doubled headers, so that two lines look like one; only the raw
 * list tells how many came.
 */
import type { IncomingMessage } from 'node:http';

/** @param name lower case */
export function headerLines({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>, name: string): string[] {
  return rawHeaders.flatMap((sent, index) =>
    index % 2 === 0 && sent.toLowerCase() === name ? [rawHeaders[index + 1] ?? ''] : [],
  );
}
