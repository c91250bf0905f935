import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { METHOD_RULES, PAYMENT_METHOD_POSTURES, type PaymentMethodPosture } from '../../domain/payment-method.ts';
import { feeScheduleResource } from '../../domain/resource/fee.ts';
import { limitsResource } from '../../domain/resource/payment-method.ts';
import { environmentName, isRemote } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';
import { PaymentMethodsResponse } from '../schemas/payment-method.ts';

/** The payment methods (contract §5). Implementation and admission are separate, and neither attests readiness. */
export const paymentMethodRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    const { runtime } = deps;
    app.get(
      '/v2/payment-methods',
      {
        config: { access: { auth: 'api_key', scope: 'read' } },
        schema: {
          tags: ['Settlement'],
          operationId: 'listPaymentMethods',
          summary: 'List how a settlement can be funded',
          response: { 200: PaymentMethodsResponse },
        },
      },
      async () => ({
        environment: environmentName(runtime),
        readiness_attested: false as const,
        methods: PAYMENT_METHOD_POSTURES.map((posture) => methodEntry(posture, isRemote(runtime))),
      }),
    );
  };

const methodEntry = (posture: PaymentMethodPosture, remote: boolean) => ({
  id: posture.id,
  name: posture.name,
  provider: posture.provider,
  implementation_state: posture.implementationState,
  admission_state: remote ? ('gated' as const) : posture.localAdmissionState,
  timing: posture.timing,
  ...termsOf(posture.id),
  required_fields: [...posture.requiredFields],
});

/** A method that is not implemented has no limits and no fees. */
function termsOf(id: PaymentMethodPosture['id']) {
  if (id === 'stablecoin') return { source_currencies: [], limits: null, fees: [] };
  const { sourceCurrencies } = METHOD_RULES[id];
  const [currency] = sourceCurrencies;
  return {
    source_currencies: [...sourceCurrencies],
    limits: limitsResource(id, currency),
    fees: feeScheduleResource([id], currency),
  };
}
