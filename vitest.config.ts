import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** These files mostly wait for servers or for time limits. They start first, so that the others run meanwhile. */
const LONGEST = [
  '/test/torture/',
  '/test/faults/',
  '/test/attack/unread-answer.test.ts',
  '/test/attack/slow-client.test.ts',
  '/test/attack/schemathesis.test.ts',
  '/test/clients/python.test.ts',
  '/test/e2e/settlement.test.ts',
];

/** Vitest accepts a sequencer only as a class. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification) => LONGEST.some((part) => moduleId.includes(part));
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

/**
 * Each of these files has a process of its own. They stop workers in the middle of their work. When the time limit of
 * such work ends in a process that still lives, Temporal's SDK prints a panic.
 */
const ALONE = ['test/e2e/**/*.test.ts', 'test/faults/**/*.test.ts', 'test/torture/**/*.test.ts'];

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // Few, because the servers that the tests use need processor time too. One more than two cores, because the long
    // files mostly wait.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // Generous: it ends what hangs. With other work on the machine, a file of 3 s took 22 s.
    testTimeout: 60_000,
    // The first file that needs a server starts it, and builds the workflow bundle if its sources have changed.
    hookTimeout: 90_000,
    reporters: ['default', ['json', { outputFile: '.local/test-report.json' }]],
    projects: [
      // These files share one process and its imports: modules do nothing when they are imported, and keep no state.
      {
        extends: true,
        test: {
          name: 'shared',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...ALONE],
          isolate: false,
        },
      },
      { extends: true, test: { name: 'own', include: ALONE } },
    ],
  },
});
