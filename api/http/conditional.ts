/** Whether an If-None-Match names this tag (RFC 9110 §13.1.2: any of a list, weak or strong, or `*`). */
export function namesTag(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = (ifNoneMatch ?? '').split(',').map((tag) => tag.trim());
  return tags.includes('*') || tags.some((tag) => tag.replace(/^W\//, '') === etag);
}
