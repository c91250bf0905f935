/** Builds the workflow bundles for an image, so that its workers do not have to build them when they start. */
import { workflowBundle } from './bundle.ts';

await workflowBundle();
await workflowBundle({ traced: true });
