/**
 * Breadth-first over every order of a universe's moves, with the `decide` that production runs. Equal situations meet,
 * so the graph is finite. Depth counts the moves of the world outside: the run's own steps and time come between them
 * as often as they like. So the first fault has a story with the fewest moves from outside.
 */
import { isEmpty } from '../../domain/settlement/change.ts';
import { isTerminal, type SettlementStatus } from '../../domain/settlement/state.ts';
import { firstFault, SITUATION_CHECKS } from './invariant.ts';
import { droppedFault, refusalFault, repeatFault, reviewFault, STEP_CHECKS, signalFault } from './invariant-of-step.ts';
import type { Move, Played } from './move.ts';
import { type Asked, type Decide, decide, type Fixture } from './shell.ts';
import { keyOf, type Situation } from './situation.ts';
import { start } from './start.ts';
import { fixtureOf, type Universe } from './universe.ts';

/** What is wrong, and the moves that lead there. */
export type Fault = { readonly rule: string; readonly moves: readonly number[] };

export type Exploration = {
  readonly universe: Universe;
  readonly nodes: number;
  readonly edges: number;
  /** How many moves from outside the farthest situation needs. */
  readonly depth: number;
  readonly seconds: number;
  /** The transitions that were taken, as `<from> <to>`. */
  readonly rows: ReadonlySet<string>;
  readonly fault: Fault | undefined;
};

/** A situation that was reached. `situation` is kept only until its own moves were played. */
type Node = {
  readonly parent: number;
  readonly move: number;
  readonly depth: number;
  readonly status: SettlementStatus;
  readonly balances: Situation['balances'];
  situation: Situation | undefined;
  /** Those who lead here without anybody's help. */
  readonly ownParents: number[];
};

type IndexedMove = { readonly index: number; readonly move: Move };

type Walk = {
  readonly universe: Universe;
  readonly fixture: Fixture;
  readonly clockMin: number;
  /** The moves of the run itself and of time, and the others. */
  readonly own: readonly IndexedMove[];
  readonly outside: readonly IndexedMove[];
  readonly nodes: Node[];
  readonly seen: Map<string, number>;
  readonly rows: Set<string>;
  edges: number;
};

export function explore(universe: Universe, decider: Decide = decide): Exploration {
  const startedAt = performance.now();
  const moves = universe.moves.map((move, index) => ({ index, move }));
  const walk: Walk = {
    universe,
    own: moves.filter(({ move }) => move.isOwn),
    outside: moves.filter(({ move }) => !move.isOwn),
    fixture: fixtureOf(universe, decider),
    clockMin: Math.min(0, ...universe.clocks.map(({ aheadMs }) => aheadMs)),
    nodes: [],
    seen: new Map(),
    rows: new Set(['null accepted']),
    edges: 0,
  };
  enter(walk, start(universe.start), { parent: -1, move: -1, depth: 0 });
  const fault = walkLayers(walk) ?? findDeadEnd(walk);
  const { nodes, edges, rows } = walk;
  const depth = nodes.at(-1)?.depth ?? 0;
  return { universe, nodes: nodes.length, edges, depth, rows, fault, seconds: (performance.now() - startedAt) / 1000 };
}

/** The own moves of a layer are played first, and stay in it. The other moves lead to the next layer. */
function walkLayers(walk: Walk): Fault | undefined {
  const { nodes, universe } = walk;
  for (let layerAt = 0, depth = 0; layerAt < nodes.length; depth += 1) {
    const from = layerAt;
    for (let at = from; at < nodes.length; at += 1) {
      const fault = playAll(walk, at, { isOwn: true });
      if (fault) return fault;
    }
    layerAt = nodes.length;
    if (depth === universe.depthMax) return undefined;
    for (let at = from; at < layerAt; at += 1) {
      const fault = playAll(walk, at, { isOwn: false });
      if (fault) return fault;
      const node = nodes[at];
      if (node) node.situation = undefined;
    }
  }
  return undefined;
}

function playAll(walk: Walk, at: number, { isOwn }: { readonly isOwn: boolean }): Fault | undefined {
  const node = walk.nodes[at];
  if (!node?.situation) return undefined;
  for (const { index, move } of isOwn ? walk.own : walk.outside) {
    if (!move.isPossible(node.situation)) continue;
    walk.edges += 1;
    const played = playSafely(walk, node.situation, move);
    if ('rule' in played) return { rule: played.rule, moves: [...movesTo(walk, at), index] };
    const { situation } = played;
    const before = walk.nodes.length;
    const to =
      situation === node.situation
        ? at
        : enter(walk, situation, { parent: at, move: index, depth: node.depth + (isOwn ? 0 : 1) });
    if (isOwn && to !== at) walk.nodes[to]?.ownParents.push(at);
    const rule = faultOf(walk, played, { isNew: to === before, to });
    if (rule !== undefined) return { rule, moves: [...movesTo(walk, at), index] };
  }
  return undefined;
}

/** The decider throws when it contradicts itself. */
function playSafely({ fixture }: Walk, situation: Situation, move: Move): Played | { readonly rule: string } {
  try {
    return move.play(situation, fixture);
  } catch (error) {
    return { rule: `the decider throws: ${String(error)}` };
  }
}

/** @returns the node of this situation, which may have been reached before */
function enter(walk: Walk, situation: Situation, from: Pick<Node, 'parent' | 'move' | 'depth'>): number {
  const { seen, nodes, clockMin } = walk;
  const key = keyOf(situation, clockMin);
  const known = seen.get(key);
  if (known !== undefined) return known;
  seen.set(key, nodes.length);
  const { settlement, balances } = situation;
  nodes.push({ ...from, situation, balances, status: settlement.status, ownParents: [] });
  return nodes.length - 1;
}

type Reached = { readonly isNew: boolean; readonly to: number };

/** Each situation is checked once. Balances are not part of its key, so they are compared however it is reached. */
function faultOf({ fixture, rows, nodes }: Walk, { situation, asked }: Played, { isNew, to }: Reached) {
  const fault = asked && askedFault(fixture, rows, asked, isNew);
  if (fault !== undefined) return fault;
  const isChecked = !isNew && hasBalances(situation.balances, nodes[to]?.balances);
  return isChecked ? undefined : firstFault(SITUATION_CHECKS, situation);
}

function hasBalances(balances: Situation['balances'], known: Situation['balances'] | undefined): boolean {
  if (balances === known) return true;
  if (balances.size !== known?.size) return false;
  for (const [account, balance] of balances) if (known.get(account) !== balance) return false;
  return true;
}

function askedFault(fixture: Fixture, rows: Set<string>, asked: Asked, isNew: boolean): string | undefined {
  const { decision } = asked;
  if ('refusal' in decision) return refusalFault(asked);
  const fault = droppedFault(asked) ?? reviewFault(asked);
  if (fault !== undefined || isEmpty(decision)) return fault;
  for (const { from, to } of decision.transitions) rows.add(`${from} ${to}`);
  const step = { ...asked, change: decision };
  return (
    firstFault(STEP_CHECKS, step) ?? (isNew ? (repeatFault(fixture, asked) ?? signalFault(fixture, step)) : undefined)
  );
}

function movesTo({ nodes }: Walk, at: number): number[] {
  const moves: number[] = [];
  for (let node = nodes[at]; node !== undefined && node.parent >= 0; node = nodes[node.parent])
    moves.unshift(node.move);
  return moves;
}

/**
 * Each open settlement comes to its end, or into review, by the run's own steps and time alone, although every call
 * fails and nobody helps.
 */
function findDeadEnd(walk: Walk): Fault | undefined {
  const { nodes } = walk;
  const isGoal = ({ status }: Node) => isTerminal(status) || status === 'needs_review';
  const reached = nodes.flatMap((node, at) => (isGoal(node) ? [at] : []));
  const isReached = new Set(reached);
  for (let at = reached.pop(); at !== undefined; at = reached.pop()) {
    for (const parent of nodes[at]?.ownParents ?? []) {
      if (isReached.has(parent)) continue;
      isReached.add(parent);
      reached.push(parent);
    }
  }
  // The one that waits in the state where it stays, rather than one on its way there.
  const movesOn = new Set(
    nodes.flatMap(({ status, ownParents }) => ownParents.filter((parent) => nodes[parent]?.status !== status)),
  );
  const deadEnd = nodes.findIndex((_node, at) => !isReached.has(at) && !movesOn.has(at));
  if (deadEnd < 0) return undefined;
  const rule = `it stays ${nodes[deadEnd]?.status}, however long it waits and however often the run tries`;
  return { rule, moves: movesTo(walk, deadEnd) };
}
