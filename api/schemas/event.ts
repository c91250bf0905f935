/** Stored events (contract §11). */
import { z } from 'zod';
import { EVENT_SCHEMA_VERSION, EVENT_TYPES } from '../../domain/event.ts';
import {
  createdFrom,
  createdTo,
  EXAMPLE_SETTLEMENT_ID,
  id,
  objectId,
  PageQuery,
  repeatable,
  settlementId,
  timestamp,
} from './common.ts';

export const EventResponse = z
  .object({
    id: objectId(),
    type: z.enum(EVENT_TYPES),
    timestamp: timestamp(),
    schema_version: z.literal(EVENT_SCHEMA_VERSION),
    sequence: z.int().min(1).meta({ description: "Counts the object's events from 1.", example: 6 }),
    data: z.looseObject({}).meta({
      description: 'The object as it was right after the change.',
      example: { settlement_id: EXAMPLE_SETTLEMENT_ID, status: 'settled' },
    }),
  })
  .meta({ id: 'Event', description: 'The body of a delivery. A read shows the same bytes as were sent.' });

export const EventPath = z.object({ event_id: id() });
export const EventQuery = PageQuery.safeExtend({
  type: repeatable(EVENT_TYPES, 'Only events of this type. It can be given several times.'),
  object_id: settlementId()
    .optional()
    .meta({ description: 'Only events of this settlement, certificate, verification, recipient or webhook.' }),
  created_from: createdFrom(),
  created_to: createdTo(),
});
