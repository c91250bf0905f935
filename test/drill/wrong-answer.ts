/** Drills in which everything answers, and something answers wrongly: a key, a clock, a namespace, a worker's version. */
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { execa } from 'execa';
import { localDirectory } from '../../process/local/place.ts';
import { acquireDevServer } from '../../scripts/stack/binary.ts';
import { until } from '../support/wait.ts';
import type { Runbook } from './runbook.ts';
import { type Drill, DrillError, type Scene } from './scene.ts';
import { preload } from './world.ts';

const LOG_TIMEOUT_MS = 30_000;
const RUN_TIMEOUT_MS = 120_000;
/** A worker that has died counts as polling for this long. */
const POLL_TIMEOUT_MS = 120_000;
const NAMESPACE = 'default';
const RETENTION_MS = 86_400_000;
const CLOCK_AHEAD_MS = 40 * 60_000;

const foreignKey = () => `foreign-1:${randomBytes(32).toString('base64')}`;

type Refused = {
  readonly program: 'api' | 'worker';
  readonly list: string;
  /** How much stored data needs the right key. */
  readonly needs: RegExp;
  readonly alert: string;
};

/** A process that was started with another key ends at once, and its last line says why. */
async function refuseKey(scene: Scene, runbook: Runbook, { program, list, needs, alert }: Refused): Promise<void> {
  const { stack, log } = scene.world;
  await scene.awaitSettled(await scene.settle());
  await stack.kill(program);
  await stack.start(program, { [list]: foreignKey() });
  scene.note(`The ${program === 'api' ? 'API' : 'worker'} is started again with another \`${list}\`. It ends at once.`);
  await scene.awaitAlert(alert);
  scene.requireText(`\`${alert}\``, runbook.alert(alert), 'one that ends at once says why in the last line of its log');
  const fault = new RegExp(`${list} lacks the key [\\w-]+, which stored data needs`);
  const line = await until(
    'line of the refused key',
    () => log(program, 'the configuration is refused').find((each) => fault.test(each)),
    { timeoutMs: LOG_TIMEOUT_MS },
  );
  scene.note(`Its log: \`${fault.exec(line)?.[0]}\`.`);
  const keys = runbook.section('Keys');
  await scene.runCommand(keys, 'keys list', {}, needs);
  await stack.start(program);
  await stack.untilReady();
  scene.note('It is started with the right key.');
  await scene.awaitSettled(await scene.settle());
  await scene.awaitAlertEnd(alert);
}

export const WRONG_ANSWERS: readonly Drill[] = [
  {
    name: 'wrong-encryption-key',
    title: 'A worker has another encryption key',
    run: (scene, runbook) =>
      refuseKey(scene, runbook, {
        program: 'worker',
        list: 'ENCRYPTION_KEYS',
        needs: /: [1-9]\d* sealed texts/,
        alert: 'WorkerDown',
      }),
  },
  {
    name: 'wrong-certificate-key',
    title: 'An API has another certificate key',
    run: (scene, runbook) =>
      refuseKey(scene, runbook, {
        program: 'api',
        list: 'CERTIFICATE_SIGNING_KEY',
        needs: /: [1-9]\d* certificates/,
        alert: 'ApiDown',
      }),
  },
  {
    name: 'clock-ahead',
    title: "An API's clock is 40 minutes ahead",
    run: async (scene, runbook) => {
      const { stack } = scene.world;
      await stack.kill('api');
      await stack.start('api', { NODE_OPTIONS: preload('clock-ahead.mjs'), CLOCK_AHEAD_MS: String(CLOCK_AHEAD_MS) });
      scene.note('The API is started again on a clock that is 40 minutes ahead.');
      await scene.awaitAlert('ClockOff');
      const row = runbook.alert('ClockOff');
      scene.requireText('`ClockOff`', row, '`settlement_clock_offset_seconds` says which process');
      const answer = await fetch(`${stack.baseUrl}/health/ready`);
      const { clock_offset_ms: offMs } = (await answer.json()) as { clock_offset_ms: number };
      if (answer.status !== 503 || Math.abs(offMs - CLOCK_AHEAD_MS) > 10_000)
        throw new DrillError(`Readiness was answered ${answer.status}, with a clock that is ${offMs} ms off.`);
      scene.note(
        `\`/health/ready\` is 503, with \`clock_offset_ms\` ${Math.round(offMs / 60_000)} minutes: no proxy sends to it.`,
      );
      scene.requireText('`ClockOff`', row, "set the machine's clock by NTP");
      await stack.kill('api');
      await stack.start('api');
      await stack.untilReady();
      scene.note('The clock is set, and the API is ready.');
      await scene.awaitSettled(await scene.settle());
      await scene.awaitAlertEnd('ClockOff');
    },
  },
  {
    name: 'namespace-lost',
    title: "Temporal's namespace is lost",
    run: async (scene, runbook) => {
      const { stack } = scene.world;
      const waiting = await scene.settleUnpaid();
      const connection = await Connection.connect({ address: stack.temporalAddress });
      try {
        await connection.operatorService.deleteNamespace({ namespace: NAMESPACE });
        scene.note('The namespace is deleted, with the run of a settlement that waits.');
        const settlement = await scene.settle();
        scene.note('Another one is accepted (202).');
        await scene.awaitAlert('OutboxStuck');
        const row = runbook.alert('OutboxStuck');
        scene.requireText(
          '`OutboxStuck`',
          row,
          'is Temporal up, and its namespace right? "When Temporal answers wrongly"',
        );
        await scene.runCommand(row, 'stuck', {}, /Temporal does not have the namespace: default/);
        const section = runbook.section('When Temporal answers wrongly');
        scene.requireText('"When Temporal answers wrongly"', section, 'make it again, with 30 days of retention');
        const retention = { workflowExecutionRetentionPeriod: msToTs(RETENTION_MS) };
        await connection.workflowService.registerNamespace({ namespace: NAMESPACE, ...retention });
        scene.note('The namespace is made again. Nothing is restarted.');
        await scene.awaitSettled(settlement);
        const isRunning = async () => (await scene.world.ops(['show', waiting])).text.match(/ run +running, .*/)?.[0];
        const run = await until('run of the settlement that waits', isRunning, { timeoutMs: RUN_TIMEOUT_MS });
        scene.note(
          `The sweep has started the run of the one that waits:${run.replace(/, .*/, '').replace(/ +/g, ' ')}.`,
        );
        await scene.awaitAlertEnd('OutboxStuck');
      } finally {
        await connection.close();
      }
    },
  },
  {
    name: 'promoted-workers-killed',
    title: 'The workers of the promoted version are killed',
    run: async (scene, runbook) => {
      const { stack } = scene.world;
      const version = { WORKER_DEPLOYMENT_NAME: 'settlement-worker', WORKER_BUILD_ID: 'b1' };
      const section = runbook.section('Worker versions');
      const temporal = await temporalProgram(stack.temporalAddress);
      await stack.kill('worker');
      await stack.start('worker', version);
      const [, promote = ''] = /^temporal (worker deployment set-current-version .*--build-id.*)$/m.exec(section) ?? [];
      await until('promoted version', () => temporal(promote, version), { timeoutMs: RUN_TIMEOUT_MS });
      scene.note('A worker of the version `b1` is promoted.');
      await scene.awaitSettled(await scene.settle());
      await stack.kill('worker');
      await stack.start('worker');
      scene.note('It is killed, and a worker without a version is started.');
      const settlement = await scene.settle();
      scene.note('A settlement is accepted (202), and stays so.');
      const first = runbook.section('What to look at first');
      const advice = /no worker of version settlement-worker\/b1 polls settlement, and no other gets its tasks; those/;
      const isNamed = async () => advice.test((await scene.world.ops(['show', settlement])).text);
      await until('worker that polls no more', isNamed, { timeoutMs: POLL_TIMEOUT_MS });
      const text = await scene.runCommand(first, 'show <settlement id>', { 'settlement id': settlement }, advice);
      scene.requireText('"Worker versions"', section, 'Redispatching does not help');
      const [command = '', words = ''] = /temporal (worker deployment set-current-version .*--yes)/.exec(text) ?? [];
      if (!(await temporal(words, {}))) throw new DrillError(`"${command}" failed.`);
      scene.note(`\`${command}\`, which it names, is run.`);
      await scene.awaitSettled(settlement);
    },
  },
];

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
