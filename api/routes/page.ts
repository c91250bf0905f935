import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import type { OpenAPIV3_1 } from 'openapi-types';
import { z } from 'zod';
import { CAPABILITY_CATALOG } from '../../domain/capability-catalog.ts';
import { catalogResource } from '../../domain/resource/capability.ts';
import { gatesResource } from '../../domain/resource/gate.ts';
import { environmentName } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';
import { type Compressible, compressible } from '../http/compression.ts';
import { readGates } from '../http/gate.ts';
import { REFERENCE_POLICY, sendAsset, sendPage, sendSharedPage, sendText } from '../pages/answer.ts';
import { ASSETS_PATH } from '../pages/asset.ts';
import { createGuidePages, llmsText, readGuide } from '../pages/guide.ts';
import { homePage } from '../pages/home.ts';
import type { Frame } from '../pages/layout.ts';
import { problemPage, problemsPage } from '../pages/problem.ts';
import { createReferencePages, referencePage } from '../pages/reference.ts';
import { createSearch } from '../pages/search.ts';
import { statusPage } from '../pages/status.ts';

/** Pages are open to everyone. They are not operations of the interface, so the OpenAPI document omits them. */
const PAGE = { config: { access: { auth: 'none', budget: 'page' } }, schema: { hide: true } } as const;

/** A word that is repeated or missing is as good as none: nothing is found. */
const Query = z.looseObject({ q: z.string().catch('') });

type ByName<Params> = { readonly Params: Params };

/** The pages of the service (contract §15). */
export const pageRoutes =
  (deps: ApiDeps, frame: Frame): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    const { publicBaseUrl } = deps.config;
    const assetOf = new Map(Object.values(frame.assets).map((asset) => [asset.name, asset]));
    const guidePage = createGuidePages(frame);
    const readDocument = () => app.swagger() as OpenAPIV3_1.Document;
    const groupPage = createReferencePages(frame, readDocument);
    const search = createSearch(frame, readDocument);

    app.get('/', PAGE, async (_request, reply) => sendPage(reply, homePage(frame, publicBaseUrl)));

    let contents: Compressible | undefined;
    app.get('/docs', PAGE, async (request, reply) => {
      contents ??= compressible(Buffer.from(referencePage(frame, app.operations)));
      return sendSharedPage(request, reply, contents);
    });

    app.get<ByName<{ group: string }>>('/docs/reference/:group', PAGE, async (request, reply) => {
      const page = await groupPage(request.params.group);
      return page === undefined ? reply.callNotFound() : sendSharedPage(request, reply, page);
    });

    app.get('/docs/search', PAGE, async (request, reply) =>
      sendPage(reply, await search(Query.parse(request.query).q), REFERENCE_POLICY),
    );

    app.get<ByName<{ guide: string }>>('/docs/:guide', PAGE, async (request, reply) => {
      const [, name = '', markdown] = /^(.*?)(\.md)?$/.exec(request.params.guide) ?? [];
      const text = markdown ? await readGuide(name) : await guidePage(name);
      if (text === undefined) return reply.callNotFound();
      return markdown ? sendText(reply, text, 'text/markdown') : sendPage(reply, text);
    });

    app.get('/llms.txt', PAGE, async (_request, reply) => sendText(reply, llmsText(), 'text/plain'));

    app.get('/status', PAGE, async (request, reply) => {
      const gates = gatesResource(environmentName(frame.runtime), await readGates(deps, request.log));
      return sendPage(reply, statusPage(frame, catalogResource(CAPABILITY_CATALOG, true), gates));
    });

    app.get('/problems', PAGE, async (_request, reply) => sendPage(reply, problemsPage(frame)));

    app.get<ByName<{ code: string }>>('/problems/:code', PAGE, async (request, reply) => {
      const page = problemPage(frame, request.params.code);
      return page === undefined ? reply.callNotFound() : sendPage(reply, page);
    });

    app.get<ByName<{ name: string }>>(`${ASSETS_PATH}/:name`, PAGE, async (request, reply) => {
      const asset = assetOf.get(request.params.name);
      if (!asset) return reply.callNotFound();
      return sendAsset(request, reply, asset);
    });
  };
