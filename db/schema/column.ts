/** Column types that several tables share: for bytes and for moments. */
import { customType, timestamp } from 'drizzle-orm/pg-core';

/** Bytes that are hashed, signed or encrypted are `bytea`, never text or JSON. */
export const bytes = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => 'bytea' });

/** A moment to the millisecond, UTC (contract §1). */
export const moment = (name: string) => timestamp(name, { withTimezone: true, precision: 3, mode: 'date' });
