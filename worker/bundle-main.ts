/** Builds the workflow bundle ahead, for an image: a worker that starts finds it and builds nothing. */
import { workflowBundle } from './bundle.ts';

await workflowBundle();
