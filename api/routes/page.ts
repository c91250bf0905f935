import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { CAPABILITY_CATALOG } from '../../domain/capability-catalog.ts';
import { DomainError } from '../../domain/error.ts';
import { REQUEST_WEIGHTS } from '../../domain/rate-limit.ts';
import { catalogResource } from '../../domain/resource/capability.ts';
import { gatesResource } from '../../domain/resource/gate.ts';
import { environmentName } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';
import { readGates } from '../http/gate.ts';
import { REFERENCE_POLICY, sendAsset, sendPage } from '../pages/answer.ts';
import { ASSETS_PATH, loadAssets } from '../pages/asset.ts';
import { createGuidePages } from '../pages/guide.ts';
import { homePage } from '../pages/home.ts';
import type { Frame } from '../pages/layout.ts';
import { problemPage } from '../pages/problem.ts';
import { referencePage } from '../pages/reference.ts';
import { statusPage } from '../pages/status.ts';

/** Pages are open to everyone. They are not operations of the interface, so the OpenAPI document omits them. */
const PAGE = { config: { access: { auth: 'none', budget: 'page' } }, schema: { hide: true } } as const;

/** A browser loads an asset once, and it is large. */
const ASSET = {
  config: { access: { auth: 'none', budget: 'page', cost: REQUEST_WEIGHTS.asset } },
  schema: { hide: true },
} as const;

type ByName<Params> = { readonly Params: Params };

/** The pages of the service (contract §15). */
export const pageRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    const { runtime } = deps;
    const { publicBaseUrl } = deps.config;
    const assets = await loadAssets();
    const assetOf = new Map(Object.values(assets).map((asset) => [asset.name, asset]));
    const frame: Frame = { runtime, assets };
    const guidePage = createGuidePages(frame);

    app.get('/', PAGE, async (_request, reply) => sendPage(reply, homePage(frame, publicBaseUrl)));

    app.get('/docs', PAGE, async (_request, reply) =>
      sendPage(reply, referencePage(frame, app.operations), REFERENCE_POLICY),
    );

    app.get<ByName<{ guide: string }>>('/docs/:guide', PAGE, async (request, reply) => {
      const page = await guidePage(request.params.guide);
      if (page === undefined) throw new DomainError('not_found', {}, 'There is no such guide.');
      return sendPage(reply, page);
    });

    app.get('/status', PAGE, async (request, reply) => {
      const gates = gatesResource(environmentName(runtime), await readGates(deps, request.log));
      return sendPage(reply, statusPage(frame, catalogResource(CAPABILITY_CATALOG, true), gates));
    });

    app.get<ByName<{ code: string }>>('/problems/:code', PAGE, async (request, reply) => {
      const page = problemPage(frame, request.params.code);
      if (page === undefined) throw new DomainError('not_found', {}, 'There is no such problem code.');
      return sendPage(reply, page);
    });

    app.get<ByName<{ name: string }>>(`${ASSETS_PATH}/:name`, ASSET, async (request, reply) => {
      const asset = assetOf.get(request.params.name);
      if (!asset) throw new DomainError('not_found', {}, 'There is no such file.');
      return sendAsset(request, reply, asset);
    });
  };
