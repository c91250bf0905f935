/** The types of events, as a named component. */
import { EVENT_TYPES } from '../../domain/event.ts';
import { growing } from './common.ts';

export const EventType = growing('EventType', EVENT_TYPES, 'What happened.');
export const eventType = (description = 'What happened.') => EventType.meta({ description });
