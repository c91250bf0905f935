/** Certificates and keys in PEM, as the libraries that connect with them read them later. */
import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';

type Given = {
  /** Of the authority. */
  readonly ca?: string | undefined;
  /** Of the client. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
};

/** @throws Error when one of them cannot be read, or the key is that of another certificate */
export function readCertificates({ ca, cert, key }: Given): void {
  if (ca !== undefined) new X509Certificate(ca);
  if (cert !== undefined) createSecureContext({ cert, key });
}
