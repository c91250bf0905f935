/** Organizations: a new key for one that has lost its own, given by two operators. */
import { reissueApiKey } from '../db/commands/key-reissue.ts';
import { issueApiKey } from '../process/api-key.ts';
import { AUDIT_PARAMETERS, changeCommand, type OpsCommand, type OpsDeps } from './command.ts';
import { required, text } from './command-line/parameter.ts';
import { EXIT, group } from './command-line/program.ts';

export const organizationCommands: OpsCommand = group('org', 'Organizations of partners.', [
  changeCommand({
    name: 'reissue-key',
    description: 'Gives an organization a new full key. The first operator requests it, a second one confirms it.',
    takes: { orgId: required('<org-id>', 'the organization', text), ...AUDIT_PARAMETERS },
    run: async (deps: OpsDeps, { orgId, ...act }) => {
      const { apiKey, credential } = issueApiKey({ runtime: deps.runtime, config: deps.keys });
      const { keyId, expiresAt } = await reissueApiKey(deps, orgId, credential, act);
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
]);
