/** Organizations (contract §3). */
import { FIRST_KEY_NAME } from '../../domain/api-key.ts';
import type { Organization } from '../../domain/organization.ts';
import { type ApiKeyCredential, insertApiKey } from '../queries/api-key.ts';
import { insertOrganization } from '../queries/organization.ts';
import { recordKeyEvent } from './api-key.ts';
import { type CommitDeps, commit } from './commit.ts';

/** Creates an organization and its first key, which has scope `full` and does not expire. */
export async function createOrganization(
  deps: CommitDeps,
  organization: Organization,
  credential: ApiKeyCredential,
  requestId: string,
): Promise<void> {
  const { orgId, createdAt } = organization;
  await commit(deps, 'organization.create', async (tx) => {
    await insertOrganization(tx, organization);
    const key = {
      ...credential,
      name: FIRST_KEY_NAME,
      scope: 'full',
      expiresAt: null,
      allowedCidrs: null,
      createdBy: null,
      createdAt,
    } as const;
    const inserted = await insertApiKey(tx, orgId, key);
    await recordKeyEvent(tx, inserted, 'api_key.created', { at: createdAt, requestId });
  });
}
