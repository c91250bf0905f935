/** Organizations: a new key for one that has lost its own, given by two operators; suspending and resuming one. */
import { reissueApiKey } from '../db/commands/key-reissue.ts';
import { resumeOrganization, suspendOrganization } from '../db/commands/organization.ts';
import { countUnderWay } from '../db/queries/operator/organization.ts';
import { issueApiKey } from '../process/api-key.ts';
import {
  AUDIT_PARAMETERS,
  changeCommand,
  newRequestId,
  type OpsCommand,
  type OpsDeps,
  showingSecret,
} from './command.ts';
import { required, text } from './command-line/parameter.ts';
import { EXIT, group } from './command-line/program.ts';
import { tierCommand } from './limit.ts';
import { lineOf } from './report.ts';
import { requireKnownKeys } from './service-key.ts';

const takes = { orgId: required('<org-id>', 'the organization', text), ...AUDIT_PARAMETERS };

export const organizationCommands: OpsCommand = group('org', 'Organizations of partners.', [
  changeCommand({
    name: 'reissue-key',
    description: 'Gives an organization a new full key. The first operator requests it, a second one confirms it.',
    takes,
    run: async (deps: OpsDeps, { orgId, ...act }) => {
      await requireKnownKeys(deps);
      const { apiKey, credential } = issueApiKey({ runtime: deps.runtime, config: deps.keys });
      const unknown = `It is unknown whether a key was made: see list keys --org ${orgId}. If so: ${apiKey}`;
      const { keyId, expiresAt } = await showingSecret(deps, unknown, () =>
        reissueApiKey(deps, orgId, credential, { ...act, requestId: newRequestId() }),
      );
      if (keyId === null) {
        deps.print(`Requested. Another operator confirms it before ${expiresAt.toISOString()} by the same command.`);
        deps.printData({ organization: orgId, key_id: null, confirm_before: expiresAt });
        return EXIT.done;
      }
      // The key of a preview is rolled back, and would not work.
      const shown = deps.isPreview === true ? 'shown here, once' : apiKey;
      deps.print(`${keyId} is a new key of scope full: ${shown}`);
      deps.print('Hand it over safely. The older keys still work: the partner revokes them with the new one.');
      deps.printData({ organization: orgId, key_id: keyId, api_key: shown });
      return EXIT.done;
    },
  }),
  changeCommand({
    name: 'suspend',
    description: 'Refuses everything but reads to an organization. What is under way continues.',
    takes,
    run: async (deps: OpsDeps, { orgId, ...act }) => {
      // Only the preview counts: a brake must not wait for a long count.
      const underWay = deps.isPreview ? await countUnderWay(deps.db, orgId, deps.now()) : undefined;
      await suspendOrganization(deps, orgId, act);
      deps.print(`${orgId} is suspended: its reads are answered, everything else gets 403 organization_suspended.`);
      deps.print('Open settlements continue, and its events are sent. Its keys stay valid, for reads.');
      if (underWay) deps.print(lineOf({ organization: orgId, ...underWay }));
      deps.print(`Tell the partner. The way back: npm run ops -- org resume ${orgId}`);
      deps.printData({ organization: orgId, status: 'suspended', ...underWay });
      return EXIT.done;
    },
  }),
  changeCommand({
    name: 'resume',
    description: 'Ends the suspension of an organization.',
    takes,
    run: async (deps: OpsDeps, { orgId, ...act }) => {
      await resumeOrganization(deps, orgId, act);
      deps.print(`${orgId} is active: its requests are answered as before.`);
      deps.printData({ organization: orgId, status: 'active' });
      return EXIT.done;
    },
  }),
  tierCommand,
]);
