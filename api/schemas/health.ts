/** Liveness and readiness (contract §15). */
import { z } from 'zod';

export const Liveness = z.object({ status: z.literal('live') }).meta({ id: 'Liveness' });

export const Readiness = z
  .object({
    status: z.enum(['ready', 'not_ready']),
    postgres: z.enum(['up', 'down']),
    migrations: z.object({ applied: z.int().nullable(), expected: z.int() }),
    temporal: z.enum(['up', 'degraded']),
  })
  .meta({ id: 'Readiness' });
