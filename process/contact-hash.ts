/**
 * Contacts of consumers (contract §12), sealed where they are stored, and found by a keyed hash: without the pepper,
 * which is not in the database, nobody can try contacts against a dump.
 */
import { createHmac } from 'node:crypto';
import type { Pepper } from '../config/environment.ts';
import type { ContactHash } from '../domain/consumer.ts';
import type { Contact } from '../domain/otp.ts';

/** `consumer` keeps it apart from the hashes of keys, sessions and codes. */
export const hashConsumerContact = ({ id: pepperId, secret }: Pepper, { channel, address }: Contact): ContactHash => ({
  pepperId,
  hash: createHmac('sha256', secret).update(['consumer', channel, address].join('\0')).digest(),
});
