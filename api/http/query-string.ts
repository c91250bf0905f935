/** The two parts of a request's address. The first `?` separates them, as the router reads it; the next are content. */
export function splitAddress(url: string): { readonly path: string; readonly query: string } {
  const end = url.search(/[?#]/);
  return end < 0 ? { path: url, query: '' } : { path: url.slice(0, end), query: url.slice(end + 1) };
}
