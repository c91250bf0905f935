/** The guide of corridors: what each needs, how long it takes, and what it costs. */
import { CORRIDORS, DELIVERY_MINUTES, RAIL_REQUIREMENTS, RAILS } from '../../domain/corridor.ts';
import { formatMoney, formatRate } from '../../domain/money.ts';
import { INPUT_METHODS, METHOD_RULES } from '../../domain/payment-method.ts';
import { GENERATED, page, table } from './document.ts';

const code = (text: string): string => `\`${text}\``;

export const corridorPage = (): string =>
  page(
    GENERATED,
    '# Corridors',
    'The same as JSON: `GET /v1/caribbean/corridors`. Every corridor is a synthetic fixture: no rate is executable, and none is\nlive.',
    '## What a recipient needs',
    "The recipient's `country` is the corridor's destination. Every recipient has `bank_details`, `mobile_details` or both;\nfurther fields are optional. A recipient without what the rail needs is 422 on `payout_rail`.",
    table(
      ['rail', 'minutes', 'fields of the recipient'],
      RAILS.map((rail) => [
        code(rail),
        `${DELIVERY_MINUTES[rail].min} to ${DELIVERY_MINUTES[rail].max}`,
        RAIL_REQUIREMENTS[rail].map(({ field, rule }) => `${code(field)}: ${rule}`).join(' '),
      ]),
    ),
    '## Corridors and rails',
    table(
      ['corridor', 'from', 'to', 'rate', 'rails'],
      Object.values(CORRIDORS).map((corridor) => [
        code(corridor.id),
        corridor.sourceCurrency,
        `${corridor.destinationCurrency}, ${corridor.destinationCountry}`,
        formatRate(corridor.rateMillionths),
        corridor.rails.map(code).join(' '),
      ]),
    ),
    '## Limits',
    'In the source currency. From 1 000.00 on the recipient must be verified.',
    table(
      ['method', 'amount', 'source currencies'],
      INPUT_METHODS.map((method) => {
        const { minimumMinor, maximumMinor, sourceCurrencies } = METHOD_RULES[method];
        const money = (minor: bigint) => formatMoney(minor, 'USD');
        return [code(method), `${money(minimumMinor)} to ${money(maximumMinor)}`, sourceCurrencies.join(' ')];
      }),
    ),
  );
