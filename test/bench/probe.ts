/** The five ways to take more than a share, which `shares` measures: each prepares tenants, then loops. */
import { SUBSCRIPTIONS_MAX } from '../../domain/webhook.ts';
import { type Answer, type Callers, createRecipients, createSubscriptions, jsonOf, type Tenant } from './greedy.ts';

const ORGANIZATIONS = 50;
const DELIVERIES = 300;
const SIGN_UPS = 6;
/** As much as a recipient may have, about 11 kB. */
const METADATA = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`key-${n}`, 'x'.repeat(500)]));
const PAGE = 100;

/** One request of the loop. Several run at the same time. */
export type Step = (index: number) => Promise<Answer>;

export type Probe = {
  readonly name: string;
  /** @param url an endpoint that answers at once */
  prepare(callers: Callers, url: string): Promise<Step>;
};

/** Whose subscription missed many deliveries: they are those of a test event each. */
async function missing(callers: Callers, url: string, deliveries: number) {
  const greedy = await callers.signUp();
  const [webhookId = ''] = await createSubscriptions(greedy, [url]);
  const path = `/v1/webhooks/${webhookId}`;
  for (let n = 0; n < deliveries; n += 1) jsonOf(await greedy.call('POST', `${path}/test`));
  return { greedy, path };
}

const replayLoop: Probe = {
  name: 'enable, replay, disable',
  prepare: async (callers, url) => {
    const since = new Date(Date.now() - 3_600_000).toISOString();
    const { greedy, path } = await missing(callers, url, DELIVERIES);
    const all = { since, statuses: ['pending', 'skipped', 'exhausted', 'canceled', 'succeeded'] };
    return (index) =>
      index % 3 === 1
        ? greedy.call('POST', `${path}/replay`, all)
        : greedy.call('PATCH', path, { status: index % 3 === 0 ? 'enabled' : 'disabled' });
  },
};

const bigAnswers: Probe = {
  name: `pages of ${PAGE} recipients with all metadata`,
  prepare: async (callers) => {
    const greedy = await callers.signUp();
    await createRecipients(greedy, PAGE, METADATA);
    return () => greedy.call('GET', `/v1/recipients?limit=${PAGE}`);
  },
};

const redeliveries: Probe = {
  name: 'redeliveries',
  prepare: async (callers, url) => {
    const { greedy, path } = await missing(callers, url, PAGE);
    const deliveries: readonly { readonly delivery_id: string }[] = jsonOf(
      await greedy.call('GET', `${path}/deliveries?limit=${PAGE}`),
    );
    return (index) =>
      greedy.call('POST', `${path}/deliveries/${deliveries[index % deliveries.length]?.delivery_id}/redeliver`);
  },
};

const manySubscriptions: Probe = {
  name: `${ORGANIZATIONS} organizations with ${SUBSCRIPTIONS_MAX} subscriptions`,
  prepare: async (callers, url) => {
    const owners: Tenant[] = [];
    for (let index = 0; index < ORGANIZATIONS; index += 1) {
      const owner = await callers.signUp();
      await createSubscriptions(
        owner,
        Array.from({ length: SUBSCRIPTIONS_MAX }, (_, n) => `${url}${index}/${n}`),
      );
      owners.push(owner);
    }
    // A key's creation and its end are an event each, for all subscriptions of its organization.
    return async (index) => {
      const owner = owners[index % owners.length];
      if (!owner) throw new Error('there is no organization');
      const created = await owner.call('POST', `/v1/orgs/${owner.orgId}/keys`, { name: 'Shares', scope: 'read' });
      return created.status === 201
        ? await owner.call('DELETE', `/v1/orgs/keys/${JSON.parse(created.body).key_id}`)
        : created;
    };
  },
};

const signUps: Probe = {
  name: `${SIGN_UPS} sign-ups of one address`,
  prepare: async (callers) => {
    const address = callers.newAddress();
    const tenants: Tenant[] = [];
    for (let n = 0; n < SIGN_UPS; n += 1) tenants.push(await callers.signUp(address));
    return async (index) => {
      const tenant = tenants[index % tenants.length];
      if (!tenant) throw new Error('there is no organization');
      return await tenant.call('GET', '/v1/recipients');
    };
  },
};

/** The last one's endpoint is gone when it ends, and its deliveries are then retried for hours. */
export const PROBES: readonly Probe[] = [replayLoop, bigAnswers, redeliveries, signUps, manySubscriptions];
