import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { z } from 'zod';
import { type CertificateRow, getCertificate, listPostings } from '../../db/queries/certificate.ts';
import { getSettlementWithHistory } from '../../db/queries/settlement-history.ts';
import { certificateId, isLedgerConfirmed, type StepPosting, UNANCHORED } from '../../domain/certificate.ts';
import { DomainError } from '../../domain/error.ts';
import { REQUEST_WEIGHTS } from '../../domain/rate-limit.ts';
import { environmentName } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';
import type { CertificateKeys } from '../http/certificate-key.ts';
import { ETAG_HEADER, namesTag } from '../http/conditional.ts';
import { findTransfer } from '../http/transfer.ts';
import { readStyle } from '../pages/asset.ts';
import type { OwnFacts } from '../pages/certificate.ts';
import { CERTIFICATE_TYPES, type CertificateType, certificateForms } from '../pages/certificate-form.ts';
import { preferredType } from '../pages/negotiation.ts';
import { consumerOf, principalOf } from '../route-config.ts';
import {
  CertificatePath,
  CertificateVerification,
  CertificateVerifyQuery,
  EvidenceCertificate,
  SignedCertificate,
} from '../schemas/certificate.ts';
import { Conditions } from '../schemas/common.ts';
import { SessionHeader } from '../schemas/session.ts';
import { TransferPath } from '../schemas/transfer.ts';

/** A certificate never changes, so that a client may keep it. */
const CACHE_CONTROL = 'private, max-age=31536000, immutable';

/** The forms for reading, and what they show in place of the name of an erased payee. */
const SHOW_PAYEE: readonly CertificateType[] = ['text/html', 'application/pdf'];
const ERASED = 'erased';

/** A cache may serve several callers: it keeps a certificate for the credential that it was read with. */
const VARY = { api_key: 'Accept, X-API-Key', session: 'Accept, Authorization' } as const;

/** JSON schemas, which the generator of the OpenAPI document turns into header objects. */
const CERTIFICATE_HEADERS = {
  ETag: ETAG_HEADER,
  Vary: { type: 'string', description: 'Names `Accept` and the header of the credential.' },
  'Cache-Control': { type: 'string', const: CACHE_CONTROL },
  'Content-Disposition': { type: 'string', description: 'A file name with the id.' },
  'X-Certificate-Signature': {
    type: 'string',
    description:
      'Only with JSON: a detached Ed25519 JWS over the bytes (RFC 7797). Its header names a key of the JWKS.',
  },
} as const;

/** Made for each route: the generator of the document keeps the objects that it is given. */
const certificateResponses = () => ({
  200: {
    description: 'The immutable bytes of the certificate: canonical JSON (RFC 8785), simulated and unanchored.',
    headers: CERTIFICATE_HEADERS,
    content: {
      'application/json': { schema: EvidenceCertificate },
      'text/html': {
        schema: z.string().meta({ description: 'For reading. It says SIMULATION and UNANCHORED in words.' }),
      },
      'application/pdf': {
        schema: z.string().meta({
          format: 'binary',
          description: 'For print. The same certificate always gives the same bytes.',
        }),
      },
      'application/jose+json': { schema: SignedCertificate },
    },
  },
  304: { description: 'The caller has these bytes.' },
});

/** Serves and verifies the caller's certificates (contract §7). The JSON answer is the bytes that were signed. */
export const certificateRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    const forms = certificateForms((await readStyle()).toString());
    const tags = createTagMemory();

    const readOwn = async ({ orgId, settlementId }: CertificateRow): Promise<OwnFacts> => {
      const { payee, reference } = await getSettlementWithHistory(deps, orgId, settlementId);
      return { payeeName: payee.name ?? ERASED, reference };
    };
    const send = async (request: FastifyRequest, reply: FastifyReply, certificate: CertificateRow) => {
      const type = preferredType(request.headers.accept, CERTIFICATE_TYPES);
      // An erasure changes the forms that show the payee, and nothing else does.
      const own = SHOW_PAYEE.includes(type) ? await readOwn(certificate) : undefined;
      const form = `${type} ${certificate.certId} ${own?.payeeName === ERASED ? ERASED : ''}`;
      const known = tags.of(form);
      const condition = request.headers['if-none-match'];
      const caching = { 'Cache-Control': CACHE_CONTROL, Vary: VARY[request.consumer ? 'session' : 'api_key'] };
      if (known !== undefined && namesTag(condition, known))
        return reply
          .headers({ ...caching, ETag: known })
          .code(304)
          .send();
      const { bytes, etag, headers } = await forms[type](certificate, async () => own ?? (await readOwn(certificate)));
      tags.remember(form, etag);
      // Only now: a form that cannot be made is a 500, which nobody may keep.
      reply.headers({ ...caching, ETag: etag });
      return namesTag(condition, etag) ? reply.code(304).send() : reply.headers(headers).send(bytes);
    };

    app.get(
      '/v1/caribbean/certificate/:cert_id',
      {
        config: { access: { auth: 'api_key', scope: 'read', cost: costOfForm } },
        schema: {
          tags: ['Caribbean off-ramp'],
          operationId: 'getCertificate',
          summary: 'Download an evidence certificate',
          description:
            'JSON, unless `Accept` prefers another form. The signature covers the JSON. `application/jose+json` has both in one ' +
            "file. `text/html` and `application/pdf` also show the payee's name and the reference, which are not certified.",
          params: CertificatePath,
          headers: Conditions,
          response: certificateResponses(),
        },
      },
      async (request, reply) =>
        send(request, reply, await getCertificate(deps.db, principalOf(request).orgId, request.params.cert_id)),
    );

    app.get(
      '/consumer/transfers/:transfer_id/certificate',
      {
        config: { access: { auth: 'session', refusals: ['not_found'], cost: costOfForm } },
        schema: {
          tags: ['Consumer'],
          operationId: 'getTransferCertificate',
          summary: "Download a transfer's evidence certificate",
          description: 'As for partners. 404 until the transfer is settled.',
          params: TransferPath,
          headers: Conditions.extend(SessionHeader.shape),
          response: certificateResponses(),
        },
      },
      async (request, reply) => {
        const { orgId } = consumerOf(request);
        const { certificateId: certId } = await findTransfer(deps, request, orgId);
        if (certId === null) throw new DomainError('not_found');
        return await send(request, reply, await getCertificate(deps.db, orgId, certId));
      },
    );

    app.get(
      '/v1/caribbean/certificate/:cert_id/verify',
      {
        config: { access: { auth: 'api_key', scope: 'read' } },
        schema: {
          tags: ['Caribbean off-ramp'],
          operationId: 'verifyCertificate',
          summary: 'Verify an evidence certificate',
          params: CertificatePath,
          querystring: CertificateVerifyQuery,
          response: { 200: CertificateVerification },
        },
      },
      async (request) => {
        const certificate = await getCertificate(deps.db, principalOf(request).orgId, request.params.cert_id);
        const { settlement_id } = request.query;
        const journal = await listPostings(deps.db, certificate.settlementId);
        const checks = await checkCertificate(deps.certificateKeys, certificate, {
          settlementId: settlement_id,
          journal,
        });
        return {
          cert_id: certificate.certId,
          settlement_id,
          valid: Object.values(checks).every((passed) => passed),
          checks,
          anchor: UNANCHORED,
          environment: environmentName(deps.runtime),
        };
      },
    );
  };

/** Making the PDF takes as long as several reads. */
const costOfForm = ({ headers: { accept } }: FastifyRequest): number =>
  preferredType(accept, CERTIFICATE_TYPES) === 'application/pdf' ? REQUEST_WEIGHTS.certificatePdf : 1;

const TAGS_MAX = 10_000;

/** The tags of the forms that this process has made, so that a conditional read need not make one again. */
function createTagMemory() {
  const tags = new Map<string, string>();
  return {
    of: (form: string): string | undefined => tags.get(form),
    remember(form: string, etag: string): void {
      const [oldest] = tags.keys();
      if (oldest !== undefined && tags.size >= TAGS_MAX) tags.delete(oldest);
      tags.set(form, etag);
    },
  };
}

/**
 * Checks a stored certificate against its own bytes and against the ledger. It trusts no column whose value the bytes
 * contain too.
 *
 * @param certificate as stored
 * @param question `settlementId` as the caller claims it; `journal`, all postings of the certificate's settlement
 */
async function checkCertificate(
  keys: CertificateKeys,
  certificate: CertificateRow,
  question: { readonly settlementId: string; readonly journal: readonly StepPosting[] },
): Promise<z.output<typeof CertificateVerification>['checks']> {
  const sha256 = createHash('sha256').update(certificate.content).digest();
  const content = readContent(certificate.content);
  return {
    exists: true,
    digest_matches_id:
      sha256.equals(certificate.sha256) && certificateId(sha256.toString('hex')) === certificate.certId,
    settlement_matches:
      [certificate.settlementId, content?.settlement_id].every((id) => id === question.settlementId) &&
      content?.org_id === certificate.orgId,
    signature_valid: await keys.verifies(certificate.signature, certificate.content),
    ledger_balanced: content !== undefined && isLedgerConfirmed(content.postings, question.journal),
  };
}

/** Undefined if the bytes are not those of a certificate. */
function readContent(bytes: Buffer) {
  try {
    return EvidenceCertificate.safeParse(JSON.parse(bytes.toString())).data;
  } catch {
    return undefined;
  }
}
