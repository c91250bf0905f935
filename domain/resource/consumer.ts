/** A consumer as the API shows it to that consumer (contract §12). */
import type { Consumer, ConsumerSession } from '../consumer.ts';

/** The fields of MeResponse. */
export const consumerResource = (consumer: Consumer, session: Pick<ConsumerSession, 'expiresAt'>) => ({
  consumer_id: consumer.consumerId,
  email: consumer.email,
  phone: consumer.phone,
  created_at: consumer.createdAt.toISOString(),
  session_expires_at: session.expiresAt.toISOString(),
});
