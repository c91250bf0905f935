/**
 * Downloads one of the two test servers into a folder by the SDK, and starts it once. Arguments: `dev-server` or
 * `time-skipping`, the folder, the version. When it fails, its last line is the reason.
 */
import { DefaultLogger, Runtime } from '@temporalio/worker';

const [kind, downloadDir, version] = process.argv.slice(2);
if (!kind || !downloadDir || !version)
  throw new Error('Usage: sdk-download.ts <dev-server|time-skipping> <folder> <version>');

try {
  // A development dependency, which is not part of a production installation.
  const { TestWorkflowEnvironment } = await import('@temporalio/testing');
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  const server = { executable: { type: 'cached-download', downloadDir, version, ttl: '3650 days' } } as const;
  const environment = await (kind === 'dev-server'
    ? TestWorkflowEnvironment.createLocal({ server })
    : TestWorkflowEnvironment.createTimeSkipping({ server }));
  await environment.teardown();
} catch (error) {
  console.error(error instanceof Error ? (error.message.split(': ').at(-1) ?? error.message) : String(error));
  process.exitCode = 1;
}
