/** Column types that several tables share: for bytes and for moments. */
import { type AnyPgColumn, customType, integer, text, timestamp } from 'drizzle-orm/pg-core';

/** Bytes that are hashed, signed or encrypted are `bytea`, never text or JSON. */
export const bytes = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => 'bytea' });

/** A moment to the millisecond, UTC (contract §1). */
export const moment = (name: string) => timestamp(name, { withTimezone: true, precision: 3, mode: 'date' });

/** The id of a row of another table. */
export const reference = <Name extends string>(name: Name, column: () => AnyPgColumn) =>
  text(name).notNull().references(column);

/** The sequence number and the time of the object's latest event; 0 and null before its first one. */
export const eventCounter = () => ({
  eventSequence: integer('event_sequence').notNull().default(0),
  eventAt: moment('event_at'),
});
