/** The security headers of every answer, for browsers. */

/** They deny everything, because no answer of the interface needs anything. A page sends a policy of its own. */
const ALWAYS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': "default-src 'none';frame-ancestors 'none'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Origin-Agent-Cluster': '?1',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-DNS-Prefetch-Control': 'off',
  'X-Download-Options': 'noopen',
  'X-Frame-Options': 'SAMEORIGIN',
  'X-Permitted-Cross-Domain-Policies': 'none',
  'X-XSS-Protection': '0',
};

/** @param isRemote a remote runtime is reached by TLS only; the local sandbox has none */
export const securityHeaders = (isRemote: boolean): Readonly<Record<string, string>> =>
  isRemote ? { ...ALWAYS, 'Strict-Transport-Security': 'max-age=31536000; includeSubDomains' } : ALWAYS;
