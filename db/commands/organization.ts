/** Organizations (contract §3): sign-up, and the suspension by an operator. */
import { DomainError, stateConflict } from '../../domain/error.ts';
import type { Organization } from '../../domain/organization.ts';
import type { Allowance } from '../../domain/quota.ts';
import type { Counted } from '../../domain/rate-limit.ts';
import { environmentName } from '../../domain/runtime.ts';
import type { Tx } from '../client.ts';
import type { ApiKeyCredential } from '../queries/api-key.ts';
import { insertAuditEntry, type OperatorAct } from '../queries/audit.ts';
import { insertOrganization, lockOrganization, setAllowance, setSuspended } from '../queries/organization.ts';
import { type Charge, charge } from '../queries/rate-limit.ts';
import { createFullKey } from './api-key.ts';
import { type CommandDeps, type CommitDeps, commit } from './commit.ts';

type Deps = CommitDeps & Pick<CommandDeps, 'now' | 'runtime'>;
type Act = Omit<OperatorAct, 'requestId'>;

type SignUp = {
  /** Of the first key. */
  readonly credential: ApiKeyCredential;
  /** What its network is charged for it; undefined: nothing. */
  readonly price: Charge | undefined;
  readonly requestId: string;
};

/**
 * Creates an organization and its first key, which has scope `full` and does not expire.
 *
 * @returns what the network has used then, which is over the quota when nothing was created
 */
export async function createOrganization(
  deps: CommitDeps,
  organization: Organization,
  { credential, price, requestId }: SignUp,
): Promise<Counted | undefined> {
  const { orgId, createdAt } = organization;
  return await commit(deps, 'organization.create', async (tx) => {
    const counted = price && (await charge(tx, price));
    if (price && counted && counted.used > price.budget.quota) return counted;
    await insertOrganization(tx, organization);
    await createFullKey(tx, orgId, credential, { at: createdAt, requestId });
    return counted;
  });
}

/**
 * Suspends an organization, a consumer's as well: its reads are answered, and everything else is refused (contract §2).
 * A request that was admitted before is carried out, and what is under way continues.
 *
 * @throws DomainError `not_found`; `state_conflict` when it is suspended
 */
export async function suspendOrganization(deps: Deps, orgId: string, act: Act): Promise<Organization> {
  const at = deps.now();
  return await commit(deps, 'organization.suspend', async (tx) => {
    const organization = await lockOperatedOrganization(tx, deps, orgId);
    const { suspendedAt } = organization;
    if (suspendedAt !== null) throw stateConflict('suspended', `It is suspended since ${suspendedAt.toISOString()}.`);
    await setSuspended(tx, orgId, at);
    await insertAuditEntry(tx, orgId, { objectId: orgId, action: 'organization_suspend', ...act, at });
    return organization;
  });
}

/**
 * Ends the suspension of an organization.
 *
 * @throws DomainError `not_found`; `state_conflict` when it is not suspended
 */
export async function resumeOrganization(deps: Deps, orgId: string, act: Act): Promise<void> {
  const at = deps.now();
  await commit(deps, 'organization.resume', async (tx) => {
    const { suspendedAt } = await lockOperatedOrganization(tx, deps, orgId);
    if (suspendedAt === null) throw stateConflict('active', 'It is not suspended.');
    await setSuspended(tx, orgId, null);
    await insertAuditEntry(tx, orgId, { objectId: orgId, action: 'organization_resume', ...act, at });
  });
}

/** Locks an organization of this environment for an operator. @throws DomainError `not_found` */
export async function lockOperatedOrganization(
  tx: Tx,
  { runtime }: Pick<Deps, 'runtime'>,
  orgId: string,
): Promise<Organization> {
  const organization = await lockOrganization(tx, orgId);
  if (organization.environment !== environmentName(runtime)) throw new DomainError('not_found');
  return organization;
}

type NewAllowance = {
  readonly allowance: Allowance;
  readonly action: 'organization_tier' | 'organization_limit';
  /** For the audit entry, before the operator's reason. */
  readonly what: string;
};

/**
 * Gives an organization other limits (contract §2). They hold from its next request on. What it holds beyond them
 * stays.
 *
 * @param change returns what it gets instead of what it has
 * @returns what it had
 * @throws DomainError `not_found`; `state_conflict` for a consumer; whatever `change` throws
 */
export async function changeAllowance(
  deps: Deps,
  orgId: string,
  { note, ...act }: Act,
  change: (current: Allowance) => NewAllowance,
): Promise<Organization> {
  const at = deps.now();
  return await commit(deps, 'organization.set_limits', async (tx) => {
    const organization = await lockOperatedOrganization(tx, deps, orgId);
    if (organization.kind !== 'partner')
      throw new DomainError('state_conflict', {}, 'A consumer has the same limits as every other one.');
    const { allowance, action, what } = change(organization);
    await setAllowance(tx, orgId, allowance);
    await insertAuditEntry(tx, orgId, { objectId: orgId, action, ...act, note: `${what}: ${note}`, at });
    return organization;
  });
}
