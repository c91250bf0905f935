/** A header that the document does not name causes no answer that the document does not have. */
import { describe, expect } from 'vitest';
import { newId } from '../../db/id.ts';
import { requireConformance } from '../support/conformance.ts';
import { FILE } from '../support/fixture.ts';
import { createRecipient, recipientBody, settleBody } from '../support/partner.ts';
import { withAttack } from './fixture.ts';
import { requestBytes } from './wire.ts';

/** Request headers of HTTP, of browsers and of proxies. Those of the framing (RFC 9112) are tested in wire.test.ts. */
const NAMES = [
  'A-IM Accept Accept-Charset Accept-Datetime Accept-Encoding Accept-Language Accept-Patch Accept-Post',
  'Accept-Ranges Access-Control-Request-Headers Access-Control-Request-Method Age Allow ALPN Alt-Svc Alt-Used',
  'Authentication-Info Authorization Cache-Control Cache-Status Cal-Managed-ID Capsule-Protocol CDN-Loop',
  'Cert-Not-After Client-Cert Connection Content-Disposition Content-Digest Content-Encoding Content-Language',
  'Content-Location Content-MD5 Content-Range Content-Security-Policy Content-Type Cookie Cookie2 DASL Date Depth',
  'Destination Device-Memory Digest DNT DPoP DPR Early-Data ETag Expect Expect-CT Expires Forwarded From',
  'Front-End-Https HTTP2-Settings If If-Match If-Modified-Since If-None-Match If-Range If-Schedule-Tag-Match',
  'If-Unmodified-Since IM Keep-Alive Last-Event-ID Last-Modified Link Location Lock-Token Max-Forwards Negotiate',
  'OData-Version Origin Overwrite Ping-From Position Pragma Prefer Preference-Applied Priority Proxy-Authorization',
  'Proxy-Connection Purpose Range RateLimit Referer Repeatability-Request-ID Replay-Nonce Repr-Digest Retry-After',
  'Save-Data Schedule-Reply Sec-CH-UA Sec-Fetch-Dest Sec-Fetch-Mode Sec-Fetch-Site Sec-GPC Sec-WebSocket-Key Server',
  'Sec-WebSocket-Version Service-Worker Set-Cookie Signature Signature-Input SLUG SOAPAction',
  'Strict-Transport-Security Surrogate-Capability TE Timeout Topic Traceparent Tracestate Trailer TTL Upgrade',
  'Upgrade-Insecure-Requests Urgency User-Agent Vary Via Want-Content-Digest Warning WWW-Authenticate X-API-Key',
  'X-Client-IP X-Correlation-ID X-CSRF-Token X-Forwarded-For X-Forwarded-Host X-Forwarded-Prefix X-Forwarded-Proto',
  'X-HTTP-Method X-HTTP-Method-Override X-Method-Override X-Original-URL X-Real-IP X-Request-ID X-Requested-With',
  'X-Rewrite-URL X-Total-Count X-UIDH Baggage B3 __proto__ constructor toString',
].flatMap((line) => line.split(' '));

const test = withAttack().extend('recipientId', FILE, ({ api, tenant }) => createRecipient(api, tenant.partner));

describe('a header that the document does not name', () => {
  test.for([
    ['GET', '/v1/recipients', ['', 'a, b', 'close'], false],
    ['POST', '/v2/settle', ['a, b'], true],
  ] as const)(
    'gives a documented answer of %s %s',
    async ([method, url, values, hasBody], { wire, tenant, recipientId }) => {
      const ask = async (name: string, value: string): Promise<number> => {
        const body = hasBody ? JSON.stringify(settleBody(recipientId)) : '';
        const lines = [
          'Host: api.acme.example',
          `X-API-Key: ${tenant.partner.apiKey}`,
          ...(hasBody ? ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`] : []),
          ...(hasBody ? [`Idempotency-Key: ${newId()}`] : []),
        ].filter((line) => !line.toLowerCase().startsWith(`${name.toLowerCase()}:`));
        const answers = await wire.exchange([requestBytes(`${method} ${url}`, [...lines, `${name}: ${value}`], body)]);
        const [answer = expect.fail(`no answer to ${name}: ${value}`), ...more] = answers;
        expect([name, value, more]).toEqual([name, value, []]);
        requireConformance(method, url, answer);
        return answer.statusCode;
      };
      const undocumented: string[] = [];
      for (const name of NAMES)
        await Promise.all(
          values.map((value) =>
            ask(name, value).catch((error: unknown) => undocumented.push(`${name}: ${value}: ${String(error)}`)),
          ),
        );
      expect(undocumented).toEqual([]);
    },
  );
});

test('a key after a thousand other headers is bound, so that the repeated request creates nothing', async ({
  wire,
  tenant,
}) => {
  const body = JSON.stringify(recipientBody());
  const bytes = requestBytes(
    'POST /v1/recipients',
    [
      ...['Host: api.acme.example', `X-API-Key: ${tenant.partner.apiKey}`],
      ...['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`],
      ...Array.from({ length: 1_000 }, () => 'A: b'),
      `Idempotency-Key: ${newId()}`,
    ],
    body,
  );
  const answers = [...(await wire.exchange([bytes])), ...(await wire.exchange([bytes]))];
  expect(answers.map(({ statusCode, headers }) => [statusCode, headers['idempotency-replayed']])).toEqual([
    [201, undefined],
    [201, 'true'],
  ]);
});
