/**
 * Troubles in which everything answers, and something answers wrongly: a key, a clock, a namespace, a worker's version.
 */
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { msToTs } from '@temporalio/common/lib/time.js';
import { execa } from 'execa';
import { localDirectory } from '../../process/local/place.ts';
import { acquireDevServer } from '../../scripts/stack/binary.ts';
import { until } from '../support/wait.ts';
import { readRunbook } from './runbook.ts';
import { DrillError, type Scene, type Trouble, type Troubles } from './scene.ts';
import { onTemporal, preload } from './world.ts';

const LOG = { timeoutMs: 30_000 };
const RUN = { timeoutMs: 120_000 };
/** A worker that has died counts as polling for this long. */
const POLL = { timeoutMs: 120_000 };
const NAMESPACE = 'default';
const RETENTION_MS = 86_400_000;
const CLOCK_AHEAD_MS = 40 * 60_000;

type Refused = {
  readonly program: 'api' | 'worker';
  readonly list: string;
  /** How much stored data needs the right key, as `ops keys list` says it. */
  readonly needs: RegExp;
  readonly alert: string;
};

/** A process that is started with another key ends at once, and the last line of its log says why. */
async function refuseKey(scene: Scene, { program, list, needs, alert }: Refused): Promise<Trouble> {
  const { stack, log } = scene.world;
  await scene.awaitSettled(await scene.settle());
  await stack.kill(program);
  await stack.start(program, { [list]: `foreign-1:${randomBytes(32).toString('base64')}` });
  const fault = new RegExp(`${list} lacks the key [\\w-]+, which stored data needs`);
  const said = () => log(program, 'the configuration is refused').find((line) => fault.test(line));
  return {
    cause: async () => {
      await scene.awaitAlert(alert);
      const line = await until('line of the refused key', said, LOG);
      return `${alert} fires; ${fault.exec(line)?.[0]}`;
    },
    remedy: async (text) => {
      const key = text.split('\n').find((line) => needs.test(line));
      if (key === undefined) throw new DrillError(`No key is needed by stored data:\n${text}`);
      await stack.start(program);
      await stack.untilReady();
      await scene.awaitSettled(await scene.settle());
      await scene.awaitAlertEnd(alert);
      return key;
    },
  };
}

export const WRONG_ANSWERS: Troubles = {
  'A worker has another encryption key': (scene) =>
    refuseKey(scene, {
      program: 'worker',
      list: 'ENCRYPTION_KEYS',
      needs: /: [1-9]\d* sealed texts/,
      alert: 'WorkerDown',
    }),
  'An API has another certificate key': (scene) =>
    refuseKey(scene, {
      program: 'api',
      list: 'CERTIFICATE_SIGNING_KEY',
      needs: /: [1-9]\d* certificates/,
      alert: 'ApiDown',
    }),
  'The clock of an API is wrong': async (scene) => {
    const { stack } = scene.world;
    await stack.kill('api');
    await stack.start('api', { NODE_OPTIONS: preload('clock-ahead.mjs'), CLOCK_AHEAD_MS: String(CLOCK_AHEAD_MS) });
    return {
      cause: async () => {
        await scene.awaitAlert('ClockOff');
        const answer = await fetch(`${stack.baseUrl}/health/ready`);
        const { clock_offset_ms: offMs } = (await answer.json()) as { clock_offset_ms: number };
        if (answer.status !== 503 || Math.abs(offMs - CLOCK_AHEAD_MS) > 10_000)
          throw new DrillError(`Readiness was answered ${answer.status}, with a clock that is ${offMs} ms off.`);
        return `ClockOff fires; ${answer.status}, ${Math.round(offMs / 60_000)} minutes`;
      },
      remedy: async () => {
        await stack.kill('api');
        await stack.start('api');
        await stack.untilReady();
        await scene.awaitSettled(await scene.settle());
        await scene.awaitAlertEnd('ClockOff');
        return 'ClockOff has ended';
      },
    };
  },
  'The namespace is gone': async (scene) => {
    const waiting = await scene.settleUnpaid();
    await onTemporal(scene.world, ({ connection }) =>
      connection.operatorService.deleteNamespace({ namespace: NAMESPACE }),
    );
    const accepted = await scene.settle();
    await scene.awaitAlert('TemporalDown');
    return {
      cause: /Temporal does not have the namespace: default/,
      remedy: async () => {
        const again = { namespace: NAMESPACE, workflowExecutionRetentionPeriod: msToTs(RETENTION_MS) };
        await onTemporal(scene.world, ({ connection }) => connection.workflowService.registerNamespace(again));
        await scene.awaitSettled(accepted);
        const run = async () => (await scene.world.ops(['show', waiting])).text.match(/ run +running, .*/)?.[0];
        const found = await until('run of the settlement that waits', run, RUN);
        await scene.awaitAlertEnd('TemporalDown');
        return found;
      },
    };
  },
  'The workers of the promoted version are gone': async (scene) => {
    const { stack } = scene.world;
    const version = { WORKER_DEPLOYMENT_NAME: 'settlement-worker', WORKER_BUILD_ID: 'b1' };
    const temporal = await temporalProgram(stack.temporalAddress);
    const section = readRunbook().section('Worker versions');
    const [, promote = ''] = /^temporal (worker deployment set-current-version .*--build-id.*)$/m.exec(section) ?? [];
    await stack.kill('worker');
    await stack.start('worker', version);
    await until('promoted version', () => temporal(promote, version), RUN);
    await scene.awaitSettled(await scene.settle());
    await stack.kill('worker');
    await stack.start('worker');
    const settlement = await scene.settle();
    const advice = /no worker of version settlement-worker\/b1 polls settlement, and no other gets its tasks/;
    const show = async () => (await scene.world.ops(['show', settlement])).text;
    await until('worker that polls no more', async () => advice.test(await show()), POLL);
    return {
      values: { 'settlement id': settlement },
      cause: advice,
      remedy: async () => {
        const named = /temporal (worker deployment set-current-version .*--yes)/.exec(await show());
        if (!named || !(await temporal(named[1] ?? '', {}))) throw new DrillError(`"${named?.[0]}" failed.`);
        await scene.awaitSettled(settlement);
        return named[0];
      },
    };
  },
};

/** Runs a command of Temporal's own command line. */
async function temporalProgram(address: string) {
  const program = await acquireDevServer({ env: process.env, binDirectory: path.join(localDirectory, 'bin') });
  return async (words: string, env: Readonly<Record<string, string>>): Promise<boolean> => {
    const { failed } = await execa('sh', ['-c', `"$TEMPORAL" ${words}`], {
      env: { TEMPORAL: program, TEMPORAL_ADDRESS: address, ...env },
      reject: false,
    });
    return !failed;
  };
}
