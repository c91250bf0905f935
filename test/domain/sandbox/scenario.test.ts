/** The list of scenarios is complete and possible. That each one is true is proved end to end. */
import { describe, expect, test } from 'vitest';
import { SANDBOX_EVENTS } from '../../../domain/sandbox/event.ts';
import { SCENARIOS } from '../../../domain/sandbox/scenario.ts';
import { EXCEPTION_TYPES } from '../../../domain/settlement/evidence.ts';
import { SETTLEMENT_STATUSES, TRANSITIONS } from '../../../domain/settlement/state.ts';

const missing = (wanted: readonly string[], shown: readonly (string | undefined)[]) =>
  wanted.filter((name) => !shown.includes(name));

describe('the scenarios', () => {
  test('reach every state, send every event and record every exception', () => {
    expect(
      missing(
        SETTLEMENT_STATUSES,
        SCENARIOS.flatMap(({ path }) => path),
      ),
    ).toEqual([]);
    expect(
      missing(
        EXCEPTION_TYPES,
        SCENARIOS.flatMap(({ exceptions }) => exceptions),
      ),
    ).toEqual([]);
    expect(
      missing(
        SANDBOX_EVENTS,
        SCENARIOS.flatMap(({ steps }) => steps.map((step) => (step.do === 'send_event' ? step.event : undefined))),
      ),
    ).toEqual([]);
  });

  test('show every card token and every special account', () => {
    const cards = ['tok_visa', 'tok_declined', 'tok_partial', 'tok_dispute', 'tok_manual'];
    expect(
      missing(
        cards,
        SCENARIOS.map(({ given }) => given.card_token),
      ),
    ).toEqual([]);
    expect(
      missing(
        ['public-sandbox-return', 'public-sandbox-manual'],
        SCENARIOS.map(({ given }) => given.public_token),
      ),
    ).toEqual([]);
  });

  test('take every transition but a cancel before admission and the failure of a funded settlement', () => {
    const taken = new Set(SCENARIOS.flatMap(({ path }) => path.slice(1).map((to, index) => `${path[index]} → ${to}`)));
    const untaken = TRANSITIONS.flatMap(({ from, to }) =>
      from === null || taken.has(`${from} → ${to}`) ? [] : [`${from} → ${to}`],
    );
    expect(untaken).toEqual(['accepted → canceled', 'funded → failed']);
  });
});
