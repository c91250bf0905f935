import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import {
  CORRIDOR_IDS,
  CORRIDOR_SCHEMA_VERSION,
  CORRIDORS,
  type Corridor,
  DELIVERY_MINUTES,
  RAIL_IMPLEMENTATION_STATE,
  RAIL_REQUIREMENTS,
} from '../../domain/corridor.ts';
import { formatRate } from '../../domain/money.ts';
import { methodsFor } from '../../domain/payment-method.ts';
import { feeScheduleResource } from '../../domain/resource/fee.ts';
import { limitsResource } from '../../domain/resource/payment-method.ts';
import { isRemote } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';
import { CorridorsResponse } from '../schemas/corridor.ts';

/** The modeled corridors (contract §5). No corridor is live. */
export const corridorRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    const remote = isRemote(deps.runtime);
    app.get(
      '/v1/caribbean/corridors',
      {
        config: { access: { auth: 'api_key', scope: 'read' } },
        schema: {
          tags: ['Caribbean off-ramp'],
          operationId: 'listCorridors',
          summary: 'List the modeled corridors',
          response: { 200: CorridorsResponse },
        },
      },
      async () => ({
        schema_version: CORRIDOR_SCHEMA_VERSION,
        rate_source: 'static_fixture' as const,
        readiness_asserted: false as const,
        corridors: CORRIDOR_IDS.map((id) => corridorEntry(CORRIDORS[id], remote)),
      }),
    );
  };

function corridorEntry(corridor: Corridor, remote: boolean) {
  const methods = methodsFor(corridor.sourceCurrency);
  return {
    corridor: corridor.id,
    source_country: corridor.sourceCountry,
    source_currency: corridor.sourceCurrency,
    destination_country: corridor.destinationCountry,
    destination_currency: corridor.destinationCurrency,
    fx_rate: formatRate(corridor.rateMillionths),
    fees: feeScheduleResource(methods, corridor.sourceCurrency),
    rails: corridor.rails.map((rail) => ({
      rail,
      implementation_state: RAIL_IMPLEMENTATION_STATE,
      delivery_minutes: DELIVERY_MINUTES[rail],
      requirements: [{ field: 'country', rule: `Must be ${corridor.destinationCountry}.` }, ...RAIL_REQUIREMENTS[rail]],
    })),
    state: remote ? ('gated' as const) : ('local sandbox' as const),
    limits: methods.map((method) => ({ payment_method: method, ...limitsResource(method, corridor.sourceCurrency) })),
  };
}
