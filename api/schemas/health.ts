/** Liveness and readiness (contract §15). */
import { z } from 'zod';
import { TEMPORAL_CAUSES } from '../../domain/temporal-health.ts';
import { closedEnum, constant, openEnum } from './common.ts';

export const Liveness = z
  .object({ status: constant('live', 'The process runs.') })
  .meta({ id: 'Liveness', description: 'The process runs.' });

const ReadinessStatus = closedEnum('ReadinessStatus', ['ready', 'not_ready'], 'Whether the service can take requests.');
const PostgresStatus = closedEnum(
  'PostgresStatus',
  ['up', 'read_only', 'down'],
  '`read_only`: the database answers, and refuses to write.',
);
const TemporalStatus = closedEnum(
  'TemporalStatus',
  ['up', 'degraded', 'down'],
  '`degraded`: Temporal does not answer now. `down`: it refuses, and an operator must act. Commands are accepted either way, and their work starts later.',
);
const TemporalCause = openEnum('TemporalCause', TEMPORAL_CAUSES, 'What is wrong with Temporal.');

const MigrationCount = z
  .object({
    applied: z
      .int()
      .nullable()
      .meta({ description: 'How many the database has; null if they cannot be read.', example: 60 }),
    expected: z.int().meta({ description: 'How many this version of the service has.', example: 60 }),
  })
  .meta({ id: 'MigrationCount', description: 'The migrations of the database.' });

export const Readiness = z
  .object({
    status: ReadinessStatus.meta({ description: 'Whether the service can take requests.' }),
    postgres: PostgresStatus.meta({ description: 'Whether the database answers and takes writes.' }),
    migrations: MigrationCount.meta({ description: 'Whether the database has the migrations of this version.' }),
    clock_offset_ms: z.int().nullable().meta({
      description:
        'By how many milliseconds the clock of the service is ahead of that of the database; null if it cannot be read.',
      example: 2,
    }),
    temporal: TemporalStatus.meta({ description: 'Whether work starts at once. It does not decide the status.' }),
    temporal_cause: TemporalCause.nullable().meta({
      description: 'What is wrong with Temporal; null if it is up.',
      example: null,
    }),
  })
  .meta({ id: 'Readiness', description: 'Whether the service can take requests, and why not.' });
