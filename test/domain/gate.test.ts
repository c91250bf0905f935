import { describe, expect, test } from 'vitest';
import { CORRIDOR_IDS } from '../../domain/corridor.ts';
import {
  allClosed,
  evaluateGates,
  forbiddingGates,
  GATE_REASONS,
  GATES,
  type Gate,
  type GateEvidence,
} from '../../domain/gate.ts';
import { gatesResource } from '../../domain/resource/gate.ts';

const NOW = new Date('2026-11-21T08:00:00.000Z');
const MINUTE_MS = 60_000;
const at = (minutes: number): Date => new Date(NOW.getTime() + minutes * MINUTE_MS);
const SCOPE = { environment: 'remote sandbox', corridors: ['US-JM'] } as const;

/** Evidence that opens its gate. Each test makes one thing of it invalid. */
const valid = (changes: Partial<GateEvidence> = {}): GateEvidence => ({
  evidenceId: '0193a5c0-0000-7000-8000-000000000001',
  gate: 'compliance_program',
  environment: 'remote sandbox',
  corridor: 'US-JM',
  reference: 'review.pdf',
  sha256: 'ab'.repeat(32),
  recordedBy: 'ana',
  recordedAt: at(-60),
  expiresAt: at(60),
  revokedAt: null,
  readAt: NOW,
  approvals: [
    { operator: 'ana', approvedAt: at(-30) },
    { operator: 'bo', approvedAt: at(-20) },
  ],
  ...changes,
});

const validForAll = (changes: Partial<GateEvidence> = {}): GateEvidence[] =>
  GATES.map((gate) => valid({ gate, ...changes }));
const reasonOf = (gate: Gate, evidence: readonly GateEvidence[], now = NOW) =>
  evaluateGates(evidence, SCOPE, now).find((verdict) => verdict.gate === gate)?.reason;

const [ANA, BO] = valid().approvals;
const REFUSALS: readonly (readonly [string, readonly GateEvidence[], string])[] = [
  ['no evidence', [], 'no_evidence'],
  ['evidence only for another gate', [valid({ gate: 'dispute_accounting' })], 'no_evidence'],
  ['evidence for an unknown gate', [valid({ gate: 'compliance_programme' })], 'no_evidence'],
  ['evidence for another environment', [valid({ environment: 'production' })], 'no_evidence'],
  ['evidence for the local sandbox', [valid({ environment: 'local sandbox' })], 'no_evidence'],
  ['evidence for another corridor', [valid({ corridor: 'CA-JM' })], 'no_evidence'],
  ['evidence for a corridor in another spelling', [valid({ corridor: 'us-jm' })], 'no_evidence'],
  ['evidence that expired a moment ago', [valid({ expiresAt: NOW })], 'expired'],
  ['evidence that expired long ago', [valid({ recordedAt: at(-99), expiresAt: at(-1) })], 'expired'],
  ["evidence that has just expired by the database's clock", [valid({ readAt: at(60) })], 'expired'],
  ['evidence with an invalid time of reading', [valid({ readAt: new Date(Number.NaN) })], 'expired'],
  ['evidence with an invalid expiry', [valid({ expiresAt: new Date(Number.NaN) })], 'expired'],
  ['evidence recorded after the current time', [valid({ recordedAt: at(1) })], 'clock_behind'],
  ['evidence with an invalid recording time', [valid({ recordedAt: new Date(Number.NaN) })], 'clock_behind'],
  [
    'an approval after the current time',
    [
      valid({
        approvals: [
          { operator: 'ana', approvedAt: at(-1) },
          { operator: 'bo', approvedAt: at(1) },
        ],
      }),
    ],
    'clock_behind',
  ],
  ['no approval', [valid({ approvals: [] })], 'not_approved'],
  ['one approval', [valid({ approvals: ANA ? [ANA] : [] })], 'not_approved'],
  ['two approvals of one operator', [valid({ approvals: ANA ? [ANA, ANA] : [] })], 'not_approved'],
  [
    'approvals of one operator in several spellings',
    [valid({ approvals: [' Ana', 'ANA ', 'ana'].map((operator) => ({ operator, approvedAt: at(-1) })) })],
    'not_approved',
  ],
  [
    'a second approval without a name',
    [valid({ approvals: [...(BO ? [BO] : []), { operator: ' ', approvedAt: at(-1) }] })],
    'not_approved',
  ],
  ['revoked evidence', [valid({ revokedAt: at(-1) })], 'revoked'],
  ['evidence whose revocation is in the future', [valid({ revokedAt: at(1) })], 'revoked'],
  ['newer evidence without approvals', [valid(), valid({ recordedAt: at(-5), approvals: [] })], 'not_approved'],
  ['newer evidence that was revoked', [valid({ recordedAt: at(-5), revokedAt: at(-1) }), valid()], 'revoked'],
  ['newer evidence recorded after the current time', [valid(), valid({ recordedAt: at(5) })], 'clock_behind'],
  [
    'two pieces of one time, if the one with the later id was revoked',
    [valid(), valid({ evidenceId: 'f', revokedAt: at(-1) })],
    'revoked',
  ],
];

describe('a gate is closed by', () => {
  test.each(REFUSALS)('%s', (_what, evidence, reason) => {
    expect(reasonOf('compliance_program', evidence)).toBe(reason);
  });

  test('one corridor of several without evidence, and by an empty list of corridors', () => {
    const everywhere = CORRIDOR_IDS.map((corridor) => valid({ corridor }));
    const reasons = (evidence: readonly GateEvidence[], corridors: readonly (typeof CORRIDOR_IDS)[number][]) =>
      evaluateGates(evidence, { ...SCOPE, corridors }, NOW).find(({ gate }) => gate === 'compliance_program')?.reason;
    expect(reasons(everywhere, CORRIDOR_IDS)).toBeNull();
    for (const missing of CORRIDOR_IDS) {
      const rest = everywhere.filter(({ corridor }) => corridor !== missing);
      expect(reasons(rest, CORRIDOR_IDS)).toBe('no_evidence');
    }
    expect(reasons(everywhere, [])).toBe('no_evidence');
  });

  test('the lack of a live adapter, which no evidence replaces', () => {
    expect(reasonOf('rail_admission', validForAll())).toBe('no_live_adapter');
  });
});

describe('the gates of a remote runtime', () => {
  test.each(['remote-sandbox', 'production'] as const)(
    '%s: a value step is forbidden in every corridor, even with evidence for every gate',
    (runtime) => {
      const environment = runtime === 'production' ? 'production' : 'remote sandbox';
      for (const corridor of CORRIDOR_IDS) {
        const verdicts = evaluateGates(
          validForAll({ environment, corridor }),
          { environment, corridors: [corridor] },
          NOW,
        );
        expect(forbiddingGates(verdicts, runtime)).toEqual([{ gate: 'rail_admission', reason: 'no_live_adapter' }]);
      }
    },
  );

  test.each(['remote-sandbox', 'production'] as const)('%s: every reason forbids', (runtime) => {
    for (const reason of GATE_REASONS)
      expect(forbiddingGates(allClosed(reason), runtime)).toEqual(GATES.map((gate) => ({ gate, reason })));
  });
});

test('the local sandbox ignores absent and revoked evidence and the lack of an adapter, and no other reason', () => {
  const ignored = GATE_REASONS.filter((reason) => forbiddingGates(allClosed(reason), 'local-sandbox').length === 0);
  expect(ignored).toEqual(['no_evidence', 'revoked', 'no_live_adapter']);
});

describe('a gate is open', () => {
  test.each(GATES.filter((gate) => gate !== 'rail_admission'))(
    '%s: with evidence for this environment and corridor, not expired, approved by two operators',
    (gate) => {
      expect(reasonOf(gate, [valid({ gate })])).toBeNull();
    },
  );

  test('open from the moment of its second approval to the moment before it expires', () => {
    const evidence = [valid()];
    expect(reasonOf('compliance_program', evidence, at(-20))).toBeNull();
    expect(reasonOf('compliance_program', evidence, new Date(at(60).getTime() - 1))).toBeNull();
  });

  test('open by the newest evidence when an older one was revoked', () => {
    expect(reasonOf('compliance_program', [valid({ recordedAt: at(-90), revokedAt: at(-80) }), valid()])).toBeNull();
  });
});

test('the resource shows the digest and the expiry of each gate, never an approver, and is never open', () => {
  const resource = gatesResource('remote sandbox', evaluateGates(validForAll(), SCOPE, NOW));
  expect(resource.open).toBe(false);
  expect(resource.gates.map(({ gate }) => gate)).toEqual([...GATES]);
  expect(resource.gates[0]).toEqual({
    gate: 'compliance_program',
    open: true,
    reason: null,
    evidence: `sha256:${'ab'.repeat(32)}`,
    expires_at: '2026-11-21T09:00:00.000Z',
  });
  expect(JSON.stringify(resource)).not.toMatch(/ana|bo"|review\.pdf/);
});

test('a gate for several corridors shows the evidence that expires first', () => {
  const evidence = [valid({ corridor: 'US-JM', expiresAt: at(90) }), valid({ corridor: 'CA-JM', expiresAt: at(30) })];
  const [verdict] = evaluateGates(evidence, { ...SCOPE, corridors: ['US-JM', 'CA-JM'] }, NOW);
  expect(verdict?.evidence?.expiresAt).toEqual(at(30));
});
