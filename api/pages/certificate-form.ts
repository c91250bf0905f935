/**
 * The forms of a certificate (contract §7): the signed JSON, one file that has its signature too, and the HTML and PDF
 * that are made from it.
 */
import { createHash } from 'node:crypto';
import type { CertificateRow } from '../../db/queries/certificate.ts';
import { certificateView, type OwnFacts } from './certificate.ts';
import { certificateHtml, certificatePolicy } from './certificate-html.ts';

/** JSON is the first and therefore the default: it is the form that was signed. */
export const CERTIFICATE_TYPES = ['application/json', 'text/html', 'application/pdf', 'application/jose+json'] as const;
export type CertificateType = (typeof CERTIFICATE_TYPES)[number];

/** `etag` is the digest of `bytes`. */
export type CertificateForm = {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly headers: Readonly<Record<string, string>>;
};

/** @param readOwn reads what only the owner of the certificate is shown; called for the printable forms only */
type Make = (certificate: CertificateRow, readOwn: () => Promise<OwnFacts>) => Promise<CertificateForm>;

/** @param style the stylesheet that the HTML contains */
export function certificateForms(style: string): Readonly<Record<CertificateType, Make>> {
  const policy = certificatePolicy(style);
  return {
    'application/json': async (certificate) => ({
      bytes: certificate.content,
      etag: `"${certificate.sha256.toString('hex')}"`,
      headers: {
        'Content-Type': 'application/json',
        'Content-Disposition': `attachment; filename="${certificate.certId}.json"`,
        // The signature covers the JSON bytes, not the HTML or the PDF.
        'X-Certificate-Signature': certificate.signature,
      },
    }),
    'text/html': async (certificate, readOwn) =>
      rendering(Buffer.from(certificateHtml(certificateView(certificate, await readOwn()), style)), {
        'Content-Type': 'text/html; charset=utf-8',
        'Content-Disposition': `inline; filename="${certificate.certId}.html"`,
        'Content-Security-Policy': policy,
      }),
    'application/pdf': async (certificate, readOwn) => {
      // Read for the first PDF: its fonts and tables are a fifth of the processor time of a start.
      const { certificatePdf } = await import('./certificate-pdf.ts');
      return rendering(await certificatePdf(certificateView(certificate, await readOwn())), {
        'Content-Type': 'application/pdf',
        'Content-Disposition': `attachment; filename="${certificate.certId}.pdf"`,
      });
    },
    'application/jose+json': async (certificate) =>
      rendering(signedFile(certificate), {
        'Content-Type': 'application/jose+json',
        'Content-Disposition': `attachment; filename="${certificate.certId}.jose.json"`,
      }),
  };
}

/**
 * The certificate with its signature as one file: a flattened JWS (RFC 7515 §7.2.2), whose payload is the unencoded
 * text (RFC 7797), as it was signed.
 */
function signedFile({ content, signature }: CertificateRow): Buffer {
  const [header = '', , value = ''] = signature.split('.');
  return Buffer.from(JSON.stringify({ payload: content.toString(), protected: header, signature: value }));
}

const rendering = (bytes: Buffer, headers: CertificateForm['headers']): CertificateForm => ({
  bytes,
  etag: `"${createHash('sha256').update(bytes).digest('hex')}"`,
  headers,
});
