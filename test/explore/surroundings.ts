/** What surrounds a settlement of the service: its recipient with the verifications, and a launch gate. */
import { recordGateEvidence, revokeGateEvidence } from '../../db/commands/gate.ts';
import { changeRecipient, createRecipient, deactivateRecipient } from '../../db/commands/recipient.ts';
import { decideVerification, openManualVerification } from '../../db/commands/verification.ts';
import type { TestApi } from '../support/api.ts';
import { type Identity, NAMES, type Name } from './situation.ts';
import { STARTED_SETTLEMENT, type Start } from './start.ts';

const { requestId, corridor } = STARTED_SETTLEMENT;
const ACT = { operator: 'ana', note: 'a story' } as const;
const CREATION = { keyed: undefined, status: 201, show: () => ({}) } as const;
/** A recipient may have one open verification of each type. So each name has a type. */
const TYPE_OF = { payee: 'kyc', other: 'kyb' } as const satisfies Record<Name, string>;

/** How a name is stored. Screening judges the payee's. */
const storedName = (name: Name, isScreeningHit: boolean): string =>
  `${name === 'payee' && isScreeningHit ? 'SANCTIONED' : 'Marcia'} ${name}`;

/** A recipient with the payee's name, and a verification about it. One about another name may be open as well. */
export async function openRecipient(
  { deps }: TestApi,
  orgId: string,
  { checked }: Pick<Start, 'checked'>,
  isScreeningHit: boolean,
) {
  const draft = {
    kind: 'vendor',
    entityType: 'individual',
    name: storedName(checked === 'open' ? 'other' : 'payee', isScreeningHit),
    country: 'JM',
    email: null,
    phone: null,
    bankDetails: { bank_name: 'Test Bank', account_number: '987654321', currency: 'JMD' },
    mobileDetails: null,
    metadata: {},
  } as const;
  const { resourceId: recipientId } = await createRecipient(deps, orgId, draft, CREATION);
  const verifications = new Map<Name, string>();
  const rename = (name: Name) =>
    changeRecipient(deps, orgId, recipientId, { change: { name: storedName(name, isScreeningHit) }, requestId });
  const check = async (name: Name, to: Identity['checks'][Name]): Promise<void> => {
    if (to === 'open') {
      const opening = { orgId, recipientId, requestId, documentType: null, documentCountry: null };
      const opened = await openManualVerification(deps, { ...opening, verificationType: TYPE_OF[name] }, CREATION);
      verifications.set(name, opened.resourceId);
      return;
    }
    const decision = { to, verifiedName: null, rejectionReason: null };
    await decideVerification(deps, orgId, verifications.get(name) ?? '', { ...decision, requestId });
  };
  if (checked === 'open') {
    await check('other', 'open');
    await rename('payee');
  }
  await check('payee', 'open');
  if (checked !== 'open') await check('payee', checked);
  return {
    recipientId,
    /** Does what changed in the model. */
    change: async (before: Identity, after: Identity): Promise<void> => {
      if (before.recipient.isActive && !after.recipient.isActive)
        await deactivateRecipient(deps, orgId, recipientId, requestId);
      for (const name of NAMES) {
        if (after.recipient.name === name && before.recipient.name !== name) await rename(name);
        if (after.checks[name] !== before.checks[name]) await check(name, after.checks[name]);
      }
    },
  };
}

/** Longer than a story. */
const GATE_EVIDENCE_MS = 90 * 24 * 60 * 60_000;

/** A launch gate. Evidence that nobody has approved closes it in the sandbox too, until it is revoked. */
export function createGate({ deps }: TestApi) {
  let evidenceId: string | undefined;
  return {
    set: async (isClosed: boolean): Promise<void> => {
      if (!isClosed) {
        if (evidenceId !== undefined) await revokeGateEvidence(deps, evidenceId, ACT);
        evidenceId = undefined;
        return;
      }
      const expiresAt = new Date(deps.now().getTime() + GATE_EVIDENCE_MS);
      const document = { reference: 'review.pdf', sha256: Buffer.alloc(32), operator: ACT.operator };
      evidenceId = await recordGateEvidence(deps, { ...document, gate: 'provider_evidence', corridor, expiresAt });
    },
  };
}
