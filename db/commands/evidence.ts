/** Records evidence of a settlement's money (contract §6). */
import { decide } from '../../domain/settlement/decide.ts';
import type { NewEvidence } from '../../domain/settlement/evidence.ts';
import type { FactsOf } from '../../domain/settlement/facts.ts';
import { type Settlement, settlementTime } from '../../domain/settlement/state.ts';
import type { Tx } from '../client.ts';
import type { Stamp } from '../queries/event.ts';
import { writeDecision } from './settlement.ts';

/**
 * Records new evidence of a locked settlement: books its money and signals the run that decides by it. The caller makes
 * sure that the evidence is not recorded yet.
 *
 * @param stamp `at` in real time
 */
export const recordEvidence = (
  tx: Tx,
  facts: FactsOf<'evidence'>,
  evidence: NewEvidence,
  { at, requestId }: Stamp,
): Promise<Settlement> =>
  writeDecision(tx, decide(facts, { type: 'evidence', evidence }, settlementTime(facts.settlement, at)), requestId);
