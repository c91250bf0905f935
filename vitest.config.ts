import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { stretched, WAIT } from './test/support/patience.ts';

/** These files mostly wait for servers or for time limits. The others use the processor meanwhile. */
const WAITING = [
  '/test/torture/',
  '/test/rehearsal/upgrade.test.ts',
  '/test/attack/unread-answer.test.ts',
  '/test/attack/slow-client.test.ts',
  '/test/attack/schemathesis.test.ts',
  '/test/e2e/settlement.test.ts',
  '/test/clients/example.test.ts',
  '/test/clients/python.test.ts',
  '/test/scripts/lifetime.test.ts',
  '/test/db/silent-server.test.ts',
  '/test/clients/payroll.test.ts',
];

/** They start at equal distances in this part of all files: at once they would leave the processor idle. */
const SPREAD_OVER = 0.5;

/** Vitest accepts a sequencer only as a class. */
class WaitingAmongOthers extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isWaiting = ({ moduleId }: TestSpecification) => WAITING.some((part) => moduleId.includes(part));
    const waiting = sorted.filter(isWaiting);
    const others = sorted.filter((file) => !isWaiting(file));
    const between = Math.floor((others.length * SPREAD_OVER) / waiting.length);
    return [...waiting.flatMap((file) => [file, ...others.splice(0, between)]), ...others];
  }
}

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    // Files share a few processes and their imports: modules do nothing when they are imported, and keep no state.
    isolate: false,
    // Few, because the servers that the tests use need processor time too, and each worker imports everything again.
    // More than two cores, because files often wait. When those that wait most began first, all tests took 328 s with
    // four, 282 with six, and 290 with eight; among the others 265 with six.
    maxWorkers: 6,
    // They only end what hangs. The first file that needs a server starts it, and a clone installs packages of Python.
    testTimeout: stretched(600_000),
    hookTimeout: stretched(600_000),
    expect: { poll: WAIT },
    sequence: { sequencer: WaitingAmongOthers },
    reporters: ['default', ['json', { outputFile: '.local/test-report.json' }]],
  },
});
