/** The guide of failures: every code with which a settlement can end, and what a partner does about it. */
import { FAILURE_HELP, type FailureHelp, OTHER_FAILURES, PROVIDER_FAILURE_HELP } from '../../domain/failure-help.ts';
import { GENERATED, page } from './document.ts';

const section = ([code, { meaning, again, payer }]: [string, FailureHelp]): string =>
  [
    `### \`${code}\``,
    meaning,
    [`- **May the same order be tried again?** ${again}`, `- **What to tell the payer:** ${payer}`].join('\n'),
  ].join('\n\n');

export const failurePage = (): string =>
  page(
    GENERATED,
    '# Failures',
    'A settlement that ends as `rejected`, `expired` or `failed` has a `failure` with `code`, `message` and `doc_url`, the\naddress of its section here. Programs branch on `code`; texts may change.',
    'To try the same order again is a new command: it takes a new `Idempotency-Key`, and the rate and the fees of then. The\nkey of the failed one answers with the failed one. What was collected and is not paid out is due back:\n[refunds](settlement.md#whose-money-is-due-back).',
    '## Codes of this service',
    ...Object.entries(FAILURE_HELP).map(section),
    '## Codes of the providers',
    'They are passed on as the provider wrote them. These are the usual ones.',
    ...Object.entries(PROVIDER_FAILURE_HELP).map(section),
    `### ${OTHER_FAILURES}`,
    "A short code of lower-case words is the card processor's reason. `R` and two digits is the return code of an ACH debit\n(Nacha).",
    '- **May the same order be tried again?** Yes, if possible by another card or account.\n- **What to tell the payer:** The payment was not accepted. Use another card or account, or ask your bank.',
  );
