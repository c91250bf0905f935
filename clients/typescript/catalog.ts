/** Certificates, the Caribbean routes, and what the service says of itself (contract §5, §7, §14). */
import { type Certificate, type DetachedCertificate, type KeySet, readSigned } from './certificate.ts';
import { UnexpectedAnswer } from './error.ts';
import type { BodyOf } from './operation.ts';
import { creationAt, type Request } from './request.ts';
import { type CallOptions, filledPath, type Send, withJson } from './transport.ts';

export type DownloadedCertificate = DetachedCertificate & { readonly certificate: Certificate };

/**
 * The bytes as they were signed. Store both: `certificates.verify` checks them offline.
 *
 * @throws UnexpectedAnswer when the signature is missing
 */
export async function downloadCertificate(
  send: Send,
  path: string,
  options: CallOptions = {},
): Promise<DownloadedCertificate> {
  const answer = await send({ method: 'GET', path, isRepeatable: true, ...options });
  const { status, headers, data: certificate } = withJson<Certificate>(answer);
  const signature = headers.get('X-Certificate-Signature');
  if (signature === null) throw new UnexpectedAnswer(status);
  return { bytes: answer.bytes, signature, certificate };
}

/**
 * The certificate, its signature and nothing else in one file, which `certificates.verify` takes as it is.
 *
 * @throws UnexpectedAnswer when the answer is not such a file
 */
export const downloadSignedFile = async (
  send: Send,
  path: string,
  options: CallOptions = {},
): Promise<{ readonly file: Uint8Array }> => {
  const headers = { Accept: 'application/jose+json' };
  const { status, bytes } = await send({ method: 'GET', path, headers, isRepeatable: true, ...options });
  if (readSigned(bytes) === undefined) throw new UnexpectedAnswer(status);
  return { file: bytes };
};

const certificatePath = (certId: string): string =>
  filledPath('/v1/caribbean/certificate/{cert_id}', { cert_id: certId });

export const catalogGroups = (send: Send, request: Request) => ({
  certificates: {
    download: async (certId: string, options?: CallOptions): Promise<DownloadedCertificate> =>
      downloadCertificate(send, certificatePath(certId), options),
    /** One self-contained file (`application/jose+json`), to keep or to pass on. */
    downloadSigned: async (certId: string, options?: CallOptions) =>
      downloadSignedFile(send, certificatePath(certId), options),
    /** What the service says of it. `certificates.verify` of the module asks nobody. */
    verify: async (certId: string, settlementId: string, options: CallOptions = {}) => {
      const input = { path: { cert_id: certId }, query: { settlement_id: settlementId }, ...options };
      return (await request('GET', '/v1/caribbean/certificate/{cert_id}/verify', input)).data;
    },
    /** The keys that sign certificates. */
    keys: async (options: CallOptions = {}): Promise<KeySet> =>
      (await request('GET', '/.well-known/jwks.json', options)).data,
  },
  /** The older routes. */
  caribbean: {
    ...creationAt(send, '/v1/caribbean/settle'),
    estimate: async (fields: BodyOf<'POST', '/v1/caribbean/estimate'>, options: CallOptions = {}) =>
      (await request('POST', '/v1/caribbean/estimate', { body: fields, isRepeatable: true, ...options })).data,
    corridors: async (options: CallOptions = {}) => (await request('GET', '/v1/caribbean/corridors', options)).data,
  },
  service: {
    capabilities: async (options: CallOptions = {}) => (await request('GET', '/v2/capabilities', options)).data,
    launchGates: async (options: CallOptions = {}) => (await request('GET', '/v2/launch-gates', options)).data,
    paymentMethods: async (options: CallOptions = {}) => (await request('GET', '/v2/payment-methods', options)).data,
  },
});
