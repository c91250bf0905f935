import { parse } from 'node:querystring';

/** The two parts of a request's address. The first `?` separates them, as the router reads it; the next are content. */
export function splitAddress(url: string): { readonly path: string; readonly query: string } {
  const end = url.search(/[?#]/);
  return end < 0 ? { path: url, query: '' } : { path: url.slice(0, end), query: url.slice(end + 1) };
}

/** The path and query of an absolute address (RFC 9112 §3.2.2), whose host says nothing about this server. */
export const originForm = (url: string): string => {
  const [, rest] = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*(.*)$/i.exec(url) ?? [];
  if (rest === undefined) return url;
  return rest.startsWith('/') ? rest : `/${rest}`;
};

/** No route has it, so that it is answered, logged and counted as every other unknown address. */
const UNDECODABLE = '/%25';

/** The address that the router reads. Fastify calls no hook for one that cannot be decoded, such as `/%zz`. */
export function routedAddress(url: string): string {
  const address = originForm(url);
  try {
    decodeURIComponent(splitAddress(address).path);
    return address;
  } catch {
    return UNDECODABLE;
  }
}

/** No object can have the entry `__proto__`: a filter by it is an unknown parameter. */
const METADATA = /^metadata\[(?!__proto__\])([^\]]*)\]$/;

/** For `maxKeys`: no limit. By default Node.js reads a thousand parameters and ignores the next. */
const EVERY = 0;

/**
 * The parameters of a query string. `metadata[key]=value` is an entry of the one parameter `metadata` (OpenAPI's style
 * `deepObject`).
 */
export function parseQuery(text: string): Record<string, unknown> {
  const entries = Object.entries(parse(text, '&', '=', { maxKeys: EVERY }));
  // `metadata` without a key: the schema refuses it.
  if (entries.some(([name]) => name === 'metadata')) return Object.fromEntries(entries);
  const labels = entries.flatMap(([name, value]) => {
    const [, key] = METADATA.exec(name) ?? [];
    return key === undefined ? [] : [[key, value] as const];
  });
  const others = entries.filter(([name]) => !METADATA.test(name));
  return Object.fromEntries([...others, ...(labels.length === 0 ? [] : [['metadata', Object.fromEntries(labels)]])]);
}
