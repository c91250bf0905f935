/** One drill under way: what was done and found, each as a sentence, and what a drill may do. */
import { randomUUID } from 'node:crypto';
import { cardSettlementBody } from '../../scripts/partner/partner.ts';
import { hasCommand, type Runbook, typed } from './runbook.ts';
import { until, type World } from './world.ts';

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
  did(sentence: string): void;
  /** Waits until the alert fires. */
  fires(alert: string): Promise<void>;
  /** Waits until the alert fires no more. */
  ends(alert: string): Promise<void>;
  /** The words that lead on are in this text of the page. */
  reads(where: string, text: string, words: string): void;
  /**
   * Types a command that a text of the page has, and finds what it must show.
   *
   * @returns the whole output
   */
  types(
    text: string,
    command: string,
    values: Readonly<Record<string, string>>,
    shows: RegExp,
    exitCode?: number,
  ): Promise<string>;
  /** Requests a settlement once, as a partner does that does not repeat anything. */
  asks(
    body: object,
    idempotencyKey?: string,
  ): Promise<{ readonly status: number; readonly text: string; readonly retryAfter: string | null }>;
  /** Requests a settlement of 250 US dollars by card. @returns its id */
  requests(changes?: object, recipient?: object): Promise<string>;
  settles(settlementId: string): Promise<void>;
  stands(settlementId: string, status: string): Promise<void>;
};

export type Drill = {
  readonly name: string;
  readonly title: string;
  run(scene: Scene, runbook: Runbook): Promise<void>;
};

export function createScene(world: World, say: (line: string) => void): Scene {
  const steps: string[] = [];
  const did = (sentence: string): void => {
    steps.push(sentence);
    say(`  ${sentence}`);
  };
  const stands = async (settlementId: string, status: string): Promise<void> => {
    let latest = '';
    const read = async () => {
      const answer = await world.partner.readSettlement(settlementId);
      latest = String(answer.json['status']);
      return latest === status;
    };
    await until(`settlement in ${status}`, SETTLED_TIMEOUT_MS, read).catch(() => {
      throw new DrillError(`${settlementId} is ${latest}, not ${status}.`);
    });
  };
  const since = (startedMs: number): string => `${Math.round((Date.now() - startedMs) / 1_000)} s`;
  return {
    world,
    steps,
    did,
    fires: async (alert) => {
      const startedMs = Date.now();
      await until(`alert ${alert}`, ALERT_TIMEOUT_MS, async () =>
        (await world.prometheus.alerts('firing')).includes(alert),
      );
      did(`The alert \`${alert}\` fires after ${since(startedMs)}.`);
    },
    ends: async (alert) => {
      const fires = async () => (await world.prometheus.alerts('firing')).includes(alert);
      await until(`end of the alert ${alert}`, ALERT_TIMEOUT_MS, async () => !(await fires()));
      did(`The alert \`${alert}\` has ended.`);
    },
    reads: (where, text, words) => {
      if (!text.includes(words)) throw new DrillError(`docs/operations.md, ${where}, does not say "${words}".`);
      did(`The runbook, ${where}, says: ${words}.`);
    },
    types: async (text, command, values, shows, exitCode = 0) => {
      if (!hasCommand(text, command))
        throw new DrillError(`That part of docs/operations.md has no \`ops ${command}\`.`);
      const args = typed(command, values);
      const ran = await world.ops(args);
      const found = ran.text.split('\n').find((line) => shows.test(line));
      if (ran.exitCode !== exitCode || found === undefined)
        throw new DrillError(
          `ops ${args.join(' ')} exited with ${ran.exitCode} and did not show ${shows}:\n${ran.text}`,
        );
      did(`\`npm run ops -- ${shown(args)}\` shows: \`${mask(found.trim()).slice(0, SHOWN_LENGTH)}\``);
      return ran.text;
    },
    asks: async (body, idempotencyKey = randomUUID()) => {
      const answer = await fetch(`${world.stack.baseUrl}/v2/settle`, {
        method: 'POST',
        headers: {
          'x-api-key': world.partner.apiKey,
          'idempotency-key': idempotencyKey,
          'content-type': 'application/json',
        },
        body: JSON.stringify(body),
      });
      return { status: answer.status, text: await answer.text(), retryAfter: answer.headers.get('retry-after') };
    },
    requests: async (changes = {}, recipient = {}) => {
      const recipientId = await world.partner.createRecipient(recipient);
      return (await world.partner.settle(cardSettlementBody(recipientId, changes))).settlement_id;
    },
    stands,
    settles: async (settlementId) => {
      const startedMs = Date.now();
      await stands(settlementId, 'settled');
      did(`The settlement is \`settled\` ${since(startedMs)} later.`);
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
    .replaceAll(/evt_[\w-]{36}/g, '<event id>')
    .replaceAll(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, '<id>')
    .replaceAll(/\((in )?\d+ (d|h|min|s)( ago)?\)/g, '(<age>)');
