import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // The servers the tests talk to need the rest of a small machine.
    maxWorkers: 2,
    testTimeout: 20_000,
    // The first file that needs a server starts it, and builds the workflow bundle when the sources changed.
    hookTimeout: 90_000,
    reporters: ['default', ['json', { outputFile: '.local/test-report.json' }]],
  },
});
