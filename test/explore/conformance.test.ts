/**
 * Random stories, decided by `decide` on plain facts, and done by the shells that production runs, on PostgreSQL. After
 * every step the rows are what the decisions say, and its last event shows what a read answers, and not who is paid.
 */
import fc from 'fast-check';
import { expect } from 'vitest';
import { findSettlement } from '../../db/queries/settlement.ts';
import { settlementMessage } from '../../domain/outbox.ts';
import { withApi } from '../support/fixture.ts';
import type { Played } from './move.ts';
import { rowsNotTaken } from './report.ts';
import { acceptedLedger, expectedRows, ledgerAfter, readLatest, readRows } from './rows.ts';
import { openService, type World } from './service.ts';
import { decide } from './shell.ts';
import { STARTED_AT, start } from './start.ts';
import { moveOf, type Story, silentMessages, story } from './story.ts';
import { fixtureOf } from './universe.ts';

const test = withApi();

/** Each story begins after the one before, because they share the launch gates. */
const STORY_MS = 60 * 24 * 60 * 60_000;
/** So few only with a seed whose stories take every row of the table. */
const STORIES = 50;
const SEED = 21;
/** Who is paid (surroundings.ts). */
const PERSONAL = /Marcia|SANCTIONED|987654321|Test Bank/;

/** The state that forbids what was asked. A cancellation in Temporal UI is then ignored. */
function refusedBy({ asked }: Played): string | undefined {
  if (!asked || !('refusal' in asked.decision)) return undefined;
  const isIgnored = asked.happening.type === 'cancel' && !asked.happening.signals;
  return isIgnored ? undefined : asked.decision.refusal.currentState;
}

/** @throws Error that tells the story up to the step after which the rows differ */
async function tell(world: World, { opened, choices }: Story, at: Date, rowsTaken: Set<string>): Promise<void> {
  const { api, partner } = world;
  const words: string[] = [];
  const isScreeningHit = opened.isScreeningHit ?? false;
  const service = await openService(world, { start: opened.start, isScreeningHit, at });
  const accepted = await findSettlement(api.connection.db, partner.orgId, service.settlementId);
  if (!accepted) throw new Error('no settlement was accepted');
  const { settlementId, orgId, recipientId, payeeSealed, payeeSha256 } = accepted;
  const begun = start(opened.start, at);
  const settlement = { ...begun.settlement, settlementId, orgId, recipientId, payeeSealed, payeeSha256 };
  const fixture = fixtureOf(opened, decide);
  let situation = { ...begun, settlement };
  let ledger = acceptedLedger(settlement, settlementMessage(settlement, null, settlement.requestId));
  try {
    expect(await readRows(api, situation)).toEqual(expectedRows(situation, ledger));
    for (const choice of choices) {
      const move = moveOf(situation, choice);
      if (!move) continue;
      words.push(`${words.length + 1}. ${move.words}`);
      const played = move.play(situation, fixture);
      const refused = await service.play(move, situation, played);
      const { asked } = played;
      if (!asked)
        ledger = { ...ledger, messages: [...ledger.messages, ...silentMessages(situation, played.situation)] };
      else if ('after' in asked.decision) ledger = ledgerAfter(ledger, asked.decision);
      situation = { ...situation, ...played.situation };
      const calls = service.countCalls();
      expect({ refused, calls, ...(await readRows(api, situation)) }).toEqual({
        refused: refusedBy(played),
        calls: situation.attempts.length,
        ...expectedRows(situation, ledger),
      });
      if (asked && 'after' in asked.decision && asked.decision.events.length > 0) {
        const { event, shown } = await readLatest(api, situation.settlement);
        expect(event).toEqual(shown);
        expect(JSON.stringify(event)).not.toMatch(PERSONAL);
      }
    }
    for (const { from, to } of ledger.transitions) rowsTaken.add(`${from} ${to}`);
  } catch (error) {
    throw new Error(`${JSON.stringify(opened.start)}\n${words.join('\n')}\n${String(error)}`, { cause: error });
  } finally {
    await service.close();
  }
}

test('every step of a random story leaves the rows that `decide` says', async ({ api, partner, clock }) => {
  let at = STARTED_AT.getTime();
  const rowsTaken = new Set<string>();
  await fc.assert(
    fc.asyncProperty(story, async (told) => {
      at += STORY_MS;
      await tell({ api, partner, clock }, told, new Date(at), rowsTaken);
    }),
    { seed: SEED, numRuns: STORIES },
  );
  expect(rowsNotTaken([{ rows: rowsTaken }])).toEqual([]);
});
