/** A partner with subscriptions and recipients. Each deactivation of a recipient is one event. */
import { recipientBody, signUp } from '../../scripts/sandbox/partner.ts';
import { inParallel } from './bench.ts';

const AT_ONCE = 8;

export type Subscriber = {
  readonly orgId: string;
  readonly apiKey: string;
  readonly urls: readonly string[];
  readonly recipientIds: readonly string[];
};

/** @param urls one subscription for each */
export async function createSubscriber(
  apiUrl: string,
  { urls, recipients }: { readonly urls: readonly string[]; readonly recipients: number },
): Promise<Subscriber> {
  const { orgId, apiKey, client } = await signUp({ baseUrl: apiUrl });
  for (const url of urls) await client.webhooks.create({ url, event_types: ['recipient.deactivated'] });
  const recipientIds: string[] = [];
  await inParallel(recipients, AT_ONCE, async () => {
    recipientIds.push((await client.recipients.create(recipientBody())).recipient_id);
  });
  return { orgId, apiKey, urls, recipientIds };
}
