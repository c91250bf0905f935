/** `If-None-Match` (RFC 9110 §13.1.2). */

/** Whether the header names this tag: as one of a list, weak or strong, or by `*`. */
export function namesTag(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = (ifNoneMatch ?? '').split(',').map((tag) => tag.trim());
  return tags.includes('*') || tags.some((tag) => tag.replace(/^W\//, '') === etag);
}
