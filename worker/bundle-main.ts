/** Builds the workflow bundles ahead, for an image: a worker that starts finds its own and builds nothing. */
import { workflowBundle } from './bundle.ts';

await workflowBundle();
await workflowBundle({ traced: true });
