import { randomBytes } from 'node:crypto';
import { describe, expect } from 'vitest';
import { newId } from '../../db/id.ts';
import { getCertificate, listPostings, readCertificateFacts } from '../../db/queries/certificate.ts';
import { certificates, evidence, postings } from '../../db/schema/index.ts';
import { certificateId } from '../../domain/certificate.ts';
import { changeOf } from '../../domain/settlement/change.ts';
import type { Settlement } from '../../domain/settlement/state.ts';
import { withDatabase } from '../support/fixture.ts';
import { insertTestOrganization } from '../support/organization.ts';
import { insertCertifiedSettlement, insertSettledSettlement } from '../support/settlement.ts';

/** `orgId`: an organization for each test. `factsOf`: of a settlement, once a change that adds nothing is written. */
const test = withDatabase(5)
  .extend('orgId', async ({ connection }) => (await insertTestOrganization(connection.db)).orgId)
  .extend(
    'factsOf',
    ({ connection }) =>
      (settlement: Settlement) =>
        connection.db.transaction((tx) =>
          readCertificateFacts(tx, changeOf({ settlement, exceptions: [] }, settlement.updatedAt)),
        ),
  );

describe('the database refuses', () => {
  test.for([
    ['a second certificate of a settlement', 'certificates_settlement', { certId: certificateId('00'.repeat(32)) }],
    ['a second certificate of an id', 'certificates_pkey', {}],
  ] as const)('%s', async ([_what, rule, other], { connection, orgId }) => {
    const { certId } = await insertCertifiedSettlement(connection.db, orgId);
    const stored = await getCertificate(connection.db, orgId, certId);
    const { settlementId } = await insertSettledSettlement(connection.db, orgId);
    const again = 'certId' in other ? { ...stored, ...other } : { ...stored, settlementId };
    await expect(connection.db.insert(certificates).values(again)).rejects.toMatchObject({
      cause: { constraint: rule },
    });
  });
});

describe('the facts of a certificate', () => {
  test('are the history of this settlement, its evidence in its order, and its journal by step and line', async ({
    connection,
    factsOf,
    orgId,
  }) => {
    const settlement = await insertSettledSettlement(connection.db, orgId);
    await insertSettledSettlement(connection.db, orgId);
    const facts = await factsOf(settlement);
    expect(facts.transitions.map(({ sequence, from, to }) => [sequence, from, to])).toEqual([
      [1, null, 'accepted'],
      [2, 'accepted', 'awaiting_funds'],
      [3, 'awaiting_funds', 'funded'],
      [4, 'funded', 'paying_out'],
      [5, 'paying_out', 'settled'],
    ]);
    expect(facts.evidence).toEqual([
      {
        evidenceId: facts.transitions[2]?.evidenceId,
        kind: 'collection_succeeded',
        sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
      {
        evidenceId: facts.transitions[4]?.evidenceId,
        kind: 'payout_confirmed',
        sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ]);
    expect([...new Set(facts.postings.map(({ step }) => step))]).toEqual([
      `collection:${facts.transitions[2]?.evidenceId}`,
      'paying_out',
      'settled',
    ]);
    expect(facts.postings.slice(-2)).toEqual([
      { step: 'settled', account: 'fx_position', currency: 'JMD', amountMinor: settlement.destinationAmountMinor },
      { step: 'settled', account: 'payout_paid', currency: 'JMD', amountMinor: -settlement.destinationAmountMinor },
    ]);
  });

  test('list evidence by position, not by time: several have the same millisecond', async ({
    connection,
    factsOf,
    orgId,
  }) => {
    const settlement = await insertSettledSettlement(connection.db, orgId);
    const kinds = ['dispute_opened', 'dispute_closed', 'dispute_opened', 'dispute_closed'] as const;
    for (const kind of kinds) {
      const [evidenceId, provider, receivedAt] = [newId(), 'cardproc' as const, settlement.createdAt];
      await connection.db.insert(evidence).values({
        evidenceId,
        settlementId: settlement.settlementId,
        provider,
        eventId: evidenceId,
        kind,
        sha256: randomBytes(32),
        pending: false,
        reversedMinor: 0n,
        receivedAt,
      });
    }
    const facts = await factsOf(settlement);
    expect(facts.evidence.map(({ kind }) => kind)).toEqual(['collection_succeeded', 'payout_confirmed', ...kinds]);
  });

  test('list postings by step in the same order under every locale, and by line', async ({
    connection,
    owner,
    orgId,
  }) => {
    const settlement = await insertSettledSettlement(connection.db, orgId);
    const { settlementId } = settlement;
    const at = new Date();
    const amounts = [1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n, 9n, 10n, 11n, -66n];
    const set = (step: string) =>
      amounts.map((amountMinor, line) => ({
        settlementId,
        step,
        line,
        account: 'refund_due' as const,
        currency: 'USD' as const,
        amountMinor,
        at,
      }));
    // This collation compares letters before case and punctuation; the order of bytes does not.
    await owner.pool.query('ALTER TABLE postings ALTER COLUMN step TYPE text COLLATE "en-x-icu"');
    for (const step of ['settled_b', 'settledA', 'settled:c'])
      await connection.db.insert(postings).values(set(step).reverse());
    const listed = await listPostings(connection.db, settlementId);
    expect([...new Set(listed.map(({ step }) => step))].slice(-4)).toEqual([
      'settled',
      'settled:c',
      'settledA',
      'settled_b',
    ]);
    expect(listed.slice(-amounts.length).map(({ amountMinor }) => amountMinor)).toEqual(amounts);
  });
});
