/** The types of events, as a named component. */
import { EVENT_TYPES } from '../../domain/event.ts';
import { openEnum } from './common.ts';

export const EventType = openEnum('EventType', EVENT_TYPES, 'What happened.');
export const eventType = (description = 'What happened.') => EventType.meta({ description });
