import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** They spend minutes waiting for servers, so that the others run beside them and not after them. */
const LONGEST = ['/test/faults/', '/test/attack/schemathesis.test.ts'];

/** Vitest takes a class. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification) => LONGEST.some((part) => moduleId.includes(part));
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

/** Files that run workflows need a process of their own: the SDK's runtime is one for each process. */
const WITH_WORKERS = [
  'test/e2e/**/*.test.ts',
  'test/workflows/**/*.test.ts',
  'test/faults/**/*.test.ts',
  'test/scripts/**/*.test.ts',
  'test/ops/**/*.test.ts',
  'test/process/**/*.test.ts',
  'test/rehearsal/**/*.test.ts',
];

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // The servers the tests talk to need the rest of a small machine.
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    testTimeout: 20_000,
    // The first file that needs a server starts it, and builds the workflow bundle when the sources changed.
    hookTimeout: 90_000,
    reporters: ['default', ['json', { outputFile: '.local/test-report.json' }]],
    projects: [
      // Modules do nothing when they are imported and keep nothing, so that one import serves many files.
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
