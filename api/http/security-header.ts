/**
 * The headers that tell browsers what an answer may do. They are the same in every answer, so helmet is asked for them
 * once, and not for each answer.
 */
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import helmet from 'helmet';

/**
 * What no answer of the interface needs is denied. A page replaces the policy with its own.
 *
 * @param isRemote a remote runtime is reached by TLS only; the local sandbox has none
 */
export function securityHeaders(isRemote: boolean): Readonly<Record<string, string>> {
  const setHeaders = helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    strictTransportSecurity: isRemote,
    referrerPolicy: { policy: 'no-referrer' },
  });
  const request = new IncomingMessage(new Socket());
  const response = new ServerResponse(request);
  setHeaders(request, response, () => undefined);
  return Object.fromEntries(response.getHeaderNames().map((name) => [name, String(response.getHeader(name))]));
}
