/** `key revoke`: ends a leaked key, with everything that was made by it. */
import { revokeApiKeyAsOperator } from '../db/commands/api-key.ts';
import { listKeysNamed } from '../db/queries/operator/organization.ts';
import { apiKeyStatus } from '../domain/api-key.ts';
import { environmentName } from '../domain/runtime.ts';
import { AUDIT_PARAMETERS, changeCommand, newRequestId, type OpsCommand, type OpsDeps } from './command.ts';
import { flag, required, text } from './command-line/parameter.ts';
import { CommandError, EXIT, group } from './command-line/program.ts';
import { lineOf } from './report.ts';

export const apiKeyCommands: OpsCommand = group('key', 'API keys of partners.', [
  changeCommand({
    name: 'revoke',
    description: 'Revokes a key and the keys that it made permanently, also the last one of an organization.',
    takes: {
      key: required('<key>', 'its id, or its first 12 characters; what follows them is ignored', text),
      isAlone: flag('--alone', 'leave the keys that it made'),
      ...AUDIT_PARAMETERS,
    },
    run: async (deps: OpsDeps, { key, isAlone, ...act }) => {
      const { keyId, orgId } = await findOneKey(deps, key);
      const asked = { keyId, orgId, isAlone };
      const { revoked, hasFullKey } = await revokeApiKeyAsOperator(deps, asked, { ...act, requestId: newRequestId() });
      for (const { keyId: ended, name, scope, lastUsedAt } of revoked)
        deps.print(`${ended} is revoked: ${lineOf({ name, scope, last_used_at: lastUsedAt })}.`);
      deps.print('Requests with these keys get 401. What was begun with them continues.');
      const wayBack = `org reissue-key ${orgId}`;
      deps.print(
        hasFullKey
          ? `A revoked key stays so. The organization ${orgId} has another key of scope full, and makes new ones by it.`
          : `The organization has no key of scope full now. Two operators give it one: npm run ops -- ${wayBack}`,
      );
      deps.printData({
        organization: orgId,
        revoked: revoked.map(({ keyId: ended }) => ended),
        has_full_key: hasFullKey,
      });
      return EXIT.done;
    },
  }),
]);

/** @throws CommandError for no key, and for several, which it lists */
async function findOneKey({ db, runtime, now, warn }: OpsDeps, named: string) {
  const [found, ...others] = await listKeysNamed(db, named, environmentName(runtime));
  // What was given may be a whole key, and is not repeated.
  if (!found) throw new CommandError(EXIT.refused, 'There is no key of this id or with this beginning.');
  if (others.length === 0) return found;
  for (const { keyId, name, scope, orgId, lastUsedAt, ...key } of [found, ...others])
    warn(
      lineOf({
        key: keyId,
        name,
        scope,
        status: apiKeyStatus(key, now()),
        last_used_at: lastUsedAt,
        organization: orgId,
      }),
    );
  throw new CommandError(EXIT.refused, 'Several keys begin like this. Name the one by its id.');
}
