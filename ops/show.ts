/** `show`: everything about one object, whatever its id names. Personal data is masked; secrets are never read. */
import { findObjectKind, OBJECT_KINDS, type ObjectKind } from '../db/queries/operator/object-kind.ts';
import { type OpsCommand, type OpsDeps, timedCommand } from './command.ts';
import { required, text } from './command-line/parameter.ts';
import { CommandError, EXIT } from './command-line/program.ts';
import { reportNamed } from './named-report.ts';
import { reportOrganization } from './organization-report.ts';
import { reportCertificate, reportProviderEvent, reportRequest } from './provider-event-report.ts';
import { reportRecipient, reportVerification } from './recipient-report.ts';
import { printReport, type Report, words } from './report.ts';
import { reportSettlement } from './settlement-report.ts';
import { reportDelivery, reportSubscription } from './webhook-report.ts';

const REPORTS: Readonly<Record<ObjectKind, (deps: OpsDeps, id: string) => Promise<Report | undefined>>> = {
  settlement: reportSettlement,
  verification: reportVerification,
  subscription: reportSubscription,
  delivery: reportDelivery,
  organization: reportOrganization,
  recipient: reportRecipient,
  certificate: reportCertificate,
  provider_event: reportProviderEvent,
  request: reportRequest,
};

const SHOWN = OBJECT_KINDS.map(words).join(', ');

export const showCommand: OpsCommand = timedCommand({
  name: 'show',
  description: 'Shows one object: its status, its history, and what to do next.',
  takes: {
    id: required('<id>', `of a ${SHOWN} or workflow; or a reference, an idempotency key, a metadata value`, text),
  },
  run: async (deps: OpsDeps, given) => {
    const report = (await reportObject(deps, objectIdOf(given.id))) ?? (await reportByName(deps, given.id));
    if (!report)
      throw new CommandError(
        EXIT.refused,
        `No ${SHOWN} has the id, reference, idempotency key or metadata value ${given.id}. ` +
          'The logs may have it, as request_id.',
      );
    printReport(deps, report, { now: deps.now(), runbookUrl: deps.runbookUrl });
    return EXIT.done;
  },
});

async function reportObject(deps: OpsDeps, id: string): Promise<Report | undefined> {
  const kind = await findObjectKind(deps.db, id);
  return kind && (await REPORTS[kind](deps, id));
}

async function reportByName(deps: OpsDeps, name: string): Promise<Report | undefined> {
  const found = await reportNamed(deps, name);
  return typeof found === 'string' ? await reportObject(deps, found) : found;
}

/** A workflow id of Temporal UI names an object after its type: `settlement:<id>`, `webhook-subscription:<id>`. */
const objectIdOf = (given: string): string =>
  /^(?:sandbox-)?(?:settlement|collection|verification|webhook-subscription):([^:]+)/.exec(given)?.[1] ?? given;
