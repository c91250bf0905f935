/** An exploration in words. */
import { TRANSITIONS } from '../../domain/settlement/state.ts';
import type { Exploration, Fault } from './explore.ts';
import { type Decide, decide } from './shell.ts';
import { start } from './start.ts';
import { fixtureOf, type Universe } from './universe.ts';

/** One line for each step of the story, then what is wrong. */
export function storyOf(universe: Universe, { moves, rule }: Fault, decider: Decide = decide): string[] {
  const fixture = fixtureOf(universe, decider);
  let situation = start(universe.start);
  const lines = moves.map((index, at) => {
    const move = universe.moves[index];
    const words = `${at + 1}. ${move?.words.replace(/\.$/, '') ?? '?'}`;
    const { status } = situation.settlement;
    try {
      situation = move?.play(situation, fixture).situation ?? situation;
    } catch {
      return `${words}.`;
    }
    const latest = situation.settlement.status;
    return latest === status ? `${words}.` : `${words}: ${status} → ${latest}.`;
  });
  return [...lines, `Wrong: ${rule}.`];
}

export const lineOf = ({ universe, nodes, edges, depth, seconds, fault }: Exploration): string =>
  [
    universe.name.padEnd(12),
    `${nodes} nodes`.padStart(15),
    `${edges} edges`.padStart(16),
    `depth ${depth}`.padStart(10),
    `${seconds.toFixed(1)} s`.padStart(8),
    fault ? '  FAULT' : '',
  ].join('');

export const countsOf = ({ universe, nodes, edges, depth, seconds, fault }: Exploration) => ({
  universe: universe.name,
  orderOf: universe.words,
  nodes,
  edges,
  depth,
  seconds,
  fault: fault ? storyOf(universe, fault) : null,
});

/** The rows of the table of transitions that no exploration has taken. */
export function rowsNotTaken(explorations: readonly Pick<Exploration, 'rows'>[]): string[] {
  const taken = new Set(explorations.flatMap(({ rows }) => [...rows]));
  return TRANSITIONS.map(({ from, to }) => `${from} ${to}`).filter((row) => !taken.has(row));
}
