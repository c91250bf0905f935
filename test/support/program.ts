/** The service's programs as files that `node` starts. The process that owns the run builds them once. */
import { z } from 'zod';
import { sharedResource } from './resource.ts';

const Programs = z.object({ api: z.string(), worker: z.string(), ops: z.string() });

/** A start takes a third of the processor time of one by tsx. */
export const testPrograms = (): Promise<z.output<typeof Programs>> => sharedResource('programs', Programs);
