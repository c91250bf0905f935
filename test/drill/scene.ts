/** One drill under way: what was done and found, each as a sentence, and what a drill may do. */
import { ApiError, type Client, createClient, type Settlement } from '../../clients/typescript/index.ts';
import { type cardSettlementBody, settleByCard } from '../../scripts/sandbox/partner.ts';
import { until } from '../support/wait.ts';
import { hasCommand, type Runbook, typed } from './runbook.ts';
import type { World } from './world.ts';

const ALERT_TIMEOUT_MS = 120_000;
const SETTLED_TIMEOUT_MS = 120_000;
const SHOWN_LENGTH = 200;

/** The operators of the drills. */
export const OPERATORS = ['ana', 'bo'] as const;

/** A drill ends with this when something did not lead to the next step. */
export class DrillError extends Error {}

export type Scene = {
  readonly world: World;
  readonly steps: readonly string[];
  note(sentence: string): void;
  /** Waits until the alert fires. */
  awaitAlert(alert: string): Promise<void>;
  /** Waits until the alert fires no more. */
  awaitAlertEnd(alert: string): Promise<void>;
  /** The words that lead on are in this text of the page. */
  requireText(where: string, text: string, words: string): void;
  /**
   * Types a command that a text of the page has, and finds what it must show.
   *
   * @returns the whole output
   */
  runCommand(
    text: string,
    command: string,
    values: Readonly<Record<string, string>>,
    shows: RegExp,
    exitCode?: number,
  ): Promise<string>;
  /**
   * Makes a request once, as a partner does that repeats nothing.
   *
   * @param apiKey by default that of the world's partner
   * @throws DrillError when the API does not refuse it
   */
  refusal(call: (client: Client) => Promise<unknown>, apiKey?: string): Promise<ApiError>;
  /** Requests a settlement of 250 US dollars by card. @returns its id */
  settle(changes?: Parameters<typeof cardSettlementBody>[1], recipientName?: string): Promise<string>;
  /** As `settle`, until it waits for its money. */
  settleUnpaid(changes?: Parameters<typeof cardSettlementBody>[1]): Promise<string>;
  /** As `settle`, until the wait for the rail's answer is over: the settlement's own clock is moved. */
  settleUnanswered(): Promise<string>;
  awaitSettled(settlementId: string): Promise<void>;
  awaitStatus(settlementId: string, status: Settlement['status']): Promise<void>;
};

export type Drill = {
  readonly name: string;
  readonly title: string;
  run(scene: Scene, runbook: Runbook): Promise<void>;
};

/** What was done outside of the commands, and what it showed. @param text what the commands of the cell printed */
export type Act = (text: string) => Promise<string>;
/** Something that is wrong now, and how the cells of its line in "Causes and remedies" are played. */
export type Trouble = {
  readonly values?: Readonly<Record<string, string>>;
  /** What the commands of a cell must show, or what is done beside them. */
  readonly cause: RegExp | Act;
  readonly remedy: RegExp | Act;
  /** Before the commands of the remedy. */
  readonly before?: () => Promise<unknown>;
  readonly after?: () => Promise<unknown>;
};
/** By the first cell of the line. */
export type Troubles = Readonly<Record<string, (scene: Scene) => Promise<Trouble>>>;

export function createScene(world: World, say: (line: string) => void): Scene {
  const steps: string[] = [];
  const note = (sentence: string): void => {
    steps.push(sentence);
    say(`  ${sentence}`);
  };
  const settle: Scene['settle'] = (changes, recipientName) => settleByCard(world.partner, changes, recipientName);
  const awaitStatus: Scene['awaitStatus'] = async (settlementId, status) => {
    const wait = { until: [status], timeoutMs: SETTLED_TIMEOUT_MS };
    const latest = await world.partner.client.settlements.wait(settlementId, wait);
    if (latest.status !== status) throw new DrillError(`${settlementId} is ${latest.status}, not ${status}.`);
  };
  const fires = async (alert: string) => (await world.prometheus.alerts('firing')).includes(alert);
  const since = (startedMs: number): string => `${Math.round((Date.now() - startedMs) / 1_000)} s`;
  return {
    world,
    steps,
    note,
    awaitAlert: async (alert) => {
      const startedMs = Date.now();
      await until(`alert ${alert}`, () => fires(alert), { timeoutMs: ALERT_TIMEOUT_MS });
      note(`The alert \`${alert}\` fires after ${since(startedMs)}.`);
    },
    awaitAlertEnd: async (alert) => {
      await until(`end of the alert ${alert}`, async () => !(await fires(alert)), { timeoutMs: ALERT_TIMEOUT_MS });
      note(`The alert \`${alert}\` has ended.`);
    },
    requireText: (where, text, words) => {
      if (!text.includes(words)) throw new DrillError(`docs/operations.md, ${where}, does not say "${words}".`);
      note(`The runbook, ${where}, says: ${words}.`);
    },
    runCommand: async (text, command, values, shows, exitCode = 0) => {
      if (!hasCommand(text, command))
        throw new DrillError(`That part of docs/operations.md has no \`ops ${command}\`.`);
      const args = typed(command, values);
      const ran = await world.ops(args);
      const found = ran.text.split('\n').find((line) => shows.test(line));
      if (ran.exitCode !== exitCode || found === undefined)
        throw new DrillError(
          `ops ${args.join(' ')} exited with ${ran.exitCode} and did not show ${shows}:\n${ran.text}`,
        );
      note(`\`npm run ops -- ${shown(args)}\` shows: \`${mask(found.trim()).slice(0, SHOWN_LENGTH)}\``);
      return ran.text;
    },
    refusal: async (call, apiKey = world.partner.apiKey) => {
      const client = createClient({ baseUrl: world.stack.baseUrl, apiKey, attemptsMax: 1 });
      const answer = await call(client).catch((error: unknown) => error);
      if (answer instanceof ApiError) return answer;
      throw new DrillError(`A request was not refused: ${answer instanceof Error ? answer : JSON.stringify(answer)}`);
    },
    settle,
    settleUnpaid: async (changes) => {
      const settlement = await settle({ card_token: 'tok_manual', ...changes });
      await awaitStatus(settlement, 'awaiting_funds');
      return settlement;
    },
    settleUnanswered: async () => {
      const settlement = await settle({}, 'PAYOUT PENDING');
      await awaitStatus(settlement, 'paying_out');
      await world.partner.client.sandbox.advance(settlement, {});
      await awaitStatus(settlement, 'needs_review');
      return settlement;
    },
    awaitStatus,
    awaitSettled: async (settlementId) => {
      const startedMs = Date.now();
      await awaitStatus(settlementId, 'settled');
      note(`The settlement is \`settled\` ${since(startedMs)} later.`);
    },
  };
}

const shown = (args: readonly string[]): string =>
  mask(args.map((arg) => (arg.includes(' ') ? `'${arg}'` : arg)).join(' '));

/** Ids, times and secrets are of one run only. */
export const mask = (text: string): string =>
  text
    .replaceAll(/sk_\w+/g, '<key>')
    .replaceAll(/\/\S+\/(settlement-stack-\w+)\//g, '')
    .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:<port>')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replaceAll(/stl_[a-z2-7]{32}/g, '<settlement id>')
    .replaceAll(/evt_(command_)?[\w-]{36}/g, '<event id>')
    .replaceAll(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, '<id>')
    .replaceAll(/\((in )?\d+ (d|h|min|s)( ago)?\)/g, '(<age>)');
