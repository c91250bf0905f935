import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** These files mostly wait for servers, for minutes. They start first, so that the others run meanwhile. */
const LONGEST = ['/test/torture/', '/test/faults/', '/test/attack/schemathesis.test.ts'];

/** Vitest accepts a sequencer only as a class. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification) => LONGEST.some((part) => moduleId.includes(part));
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

/** Files that run workflows need a process each: Temporal's SDK has one runtime per process. */
const WITH_WORKERS = [
  'test/e2e/**/*.test.ts',
  'test/workflows/**/*.test.ts',
  'test/faults/**/*.test.ts',
  'test/scripts/**/*.test.ts',
  'test/ops/**/*.test.ts',
  'test/process/**/*.test.ts',
  'test/rehearsal/**/*.test.ts',
  'test/clients/**/*.test.ts',
  'test/torture/**/*.test.ts',
];

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // Few, because the servers that the tests use need processor time too.
    maxWorkers: 2,
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
          exclude: [...configDefaults.exclude, ...WITH_WORKERS],
          isolate: false,
        },
      },
      { extends: true, test: { name: 'own', include: WITH_WORKERS } },
    ],
  },
});
