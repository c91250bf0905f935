/** The page of state machines, drawn from the tables that the code and the database enforce. */
import { EVENT_OF_STATUS } from '../../domain/event.ts';
import { INPUT_METHODS, PAYMENT_METHODS } from '../../domain/payment-method.ts';
import {
  SETTLEMENT_STATUSES,
  TERMINAL_STATUSES,
  TRANSITIONS,
  UNFUNDED_STATUSES,
  waitWindowMs,
} from '../../domain/settlement/state.ts';
import { VERIFICATION_STATUSES, VERIFICATION_TRANSITIONS, VERIFICATION_WINDOW_MS } from '../../domain/verification.ts';
import { GENERATED, page, table } from './document.ts';

type Row = { readonly from: string | null; readonly to: string; readonly when: string };

export function stateMachinePage(): string {
  return page(
    GENERATED,
    '# State machines',
    'Each transition is one row, written in one transaction with its event and its postings. The code refuses every other transition, and so does a trigger of the database.',
    ...settlement(),
    ...verification(),
  );
}

function settlement(): string[] {
  return [
    '## Settlement',
    diagram(TRANSITIONS, TERMINAL_STATUSES),
    `Terminal states: ${codes(TERMINAL_STATUSES)}. A partner can cancel in ${codes(UNFUNDED_STATUSES)}.`,
    '### Transitions',
    table(
      ['From', 'To', 'When', 'Event'],
      TRANSITIONS.map(({ from, to, when }) => [
        from === null ? '–' : code(from),
        code(to),
        when,
        code(EVENT_OF_STATUS[to]),
      ]),
    ),
    '### Windows',
    'The longest time that a settlement waits in a state, by its own clock, and the state that follows. The other states have no limit.',
    table(['State', ...PAYMENT_METHODS.map(code), 'Then'], windows()),
    `A partner can name the methods ${codes(INPUT_METHODS)}. The method ${code('internal')} funds the Caribbean route.`,
  ];
}

function windows(): string[][] {
  const timed = SETTLEMENT_STATUSES.filter((status) =>
    PAYMENT_METHODS.some((method) => waitWindowMs(status, method) !== undefined),
  );
  return timed.map((status) => {
    const lengths = PAYMENT_METHODS.map((method) => waitWindowMs(status, method));
    const next = TRANSITIONS.filter(
      ({ from, to }) => from === status && (to === 'expired' || to === 'needs_review'),
    ).map(({ to }) => to);
    return [
      code(status),
      ...lengths.map((windowMs) => (windowMs === undefined ? '–' : duration(windowMs))),
      codes(next),
    ];
  });
}

function verification(): string[] {
  const terminal = VERIFICATION_STATUSES.filter((status) =>
    VERIFICATION_TRANSITIONS.every(({ from }) => from !== status),
  );
  return [
    '## Verification',
    diagram(VERIFICATION_TRANSITIONS, terminal),
    `Terminal states: ${codes(terminal)}. A verification stays open for ${duration(VERIFICATION_WINDOW_MS)}.`,
    '### Transitions of a verification',
    table(
      ['From', 'To', 'When'],
      VERIFICATION_TRANSITIONS.map(({ from, to, when }) => [from === null ? '–' : code(from), code(to), when]),
    ),
  ];
}

/** Mermaid takes a colon as the end of a transition's name, and a semicolon as the end of a statement. */
function diagram(transitions: readonly Row[], terminal: readonly string[]): string {
  const rows = transitions.map(
    ({ from, to, when }) => `  ${from ?? '[*]'} --> ${to}: ${when.replaceAll(/[:;]/g, ',')}`,
  );
  const ends = terminal.map((status) => `  ${status} --> [*]`);
  return ['```mermaid', 'stateDiagram-v2', ...rows, ...ends, '```'].join('\n');
}

const code = (text: string): string => `\`${text}\``;
const codes = (texts: readonly string[]): string => texts.map(code).join(', ');

const DAY_MINUTES = 1_440;

function duration(windowMs: number): string {
  const minutes = windowMs / 60_000;
  return minutes % DAY_MINUTES === 0 ? `${minutes / DAY_MINUTES} days` : `${minutes} minutes`;
}
