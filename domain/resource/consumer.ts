/** A consumer as the API shows it to that consumer (contract §12). */
import type { Consumer, ConsumerSession } from '../consumer.ts';

/** The fields of MeResponse. @param address of the consumer's contact, opened */
export const consumerResource = (consumer: Consumer, address: string, session: Pick<ConsumerSession, 'expiresAt'>) => ({
  consumer_id: consumer.consumerId,
  email: consumer.channel === 'email' ? address : null,
  phone: consumer.channel === 'phone' ? address : null,
  created_at: consumer.createdAt.toISOString(),
  session_expires_at: session.expiresAt.toISOString(),
});
