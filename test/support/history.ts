/** All text in a workflow's history. Payloads are decoded: as JSON they would be base64. */
import type { History } from '@temporalio/common/lib/proto-utils.js';

export function historyText(history: History): string {
  const parts: string[] = [];
  const visit = (value: unknown): void => {
    if (value instanceof Uint8Array) parts.push(Buffer.from(value).toString());
    else if (typeof value === 'string') parts.push(value);
    else if (Array.isArray(value)) value.forEach(visit);
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(visit);
  };
  visit(history);
  return parts.join('\n');
}
