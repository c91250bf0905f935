/** What makes the API and the worker pass the crash points of everything that is no settlement. */
import { LANES } from '../../domain/webhook.ts';
import type { Json } from './client.ts';
import { type Pass, query, requireStatus, send, until, type World } from './crash-world.ts';
import { failsOnce, type Subscriber } from './subscriber.ts';
import { createRecipient, createTenant, type Tenant } from './tenant.ts';

/** The deliveries of this time are sent again. */
const REPLAYED_MS = 10_000;

/** A creation that is sent again creates nothing more. */
const requireOne = async (world: World, tenant: Tenant, path: string): Promise<void> => {
  const { length } = requireStatus(await send(world, tenant, 'GET', path), 200).body;
  if (length !== 1) throw new Error(`${path} has ${length} entries`);
};

export const createOneRecipient: Pass = async (world) => {
  const tenant = await createTenant(world.deps.http);
  await createRecipient(world.deps.http, tenant, 'Marcia Brown');
  await requireOne(world, tenant, '/v1/recipients');
};
export const changeRecipient: Pass = async (world) => {
  const { deps, tenant } = world;
  const path = `/v1/recipients/${await createRecipient(deps.http, tenant, 'Marcia Brown')}`;
  requireStatus(await send(world, tenant, 'PUT', path, { name: 'Marcia Green' }), 200);
  const { body } = await send(world, tenant, 'GET', path);
  if (body.name !== 'Marcia Green') throw new Error(`the recipient is ${body.name}`);
};

export const deactivateRecipient: Pass = async (world) => {
  const { deps, tenant } = world;
  const path = `/v1/recipients/${await createRecipient(deps.http, tenant, 'Marcia Brown')}`;
  requireStatus(await send(world, tenant, 'DELETE', path), 200);
  const { body } = await send(world, tenant, 'GET', path);
  if (body.is_active) throw new Error('the recipient is active');
};

/** Each ping has a subscription of its own: the run of another one may have to wait for a worker that has died. */
const pingNewSubscriber = async (world: World): Promise<Subscriber> => {
  const subscriber = await world.subscribe();
  const path = `/v1/webhooks/${subscriber.webhookId}/test`;
  const { event_id: eventId } = requireStatus(await send(world, subscriber.tenant, 'POST', path, {}), 202).body;
  await until(`delivery of ${eventId}`, async () => subscriber.events.get(eventId));
  return subscriber;
};
export const ping: Pass = async (world) => void (await pingNewSubscriber(world));

/** An event whose first attempt fails: what makes the retry is done before it is due. */
const failOnce = async (world: World, beforeRetry: (subscriber: Subscriber, eventId: string) => Promise<void>) => {
  const subscriber = await world.subscribe('fails_at_first');
  const path = `/v1/webhooks/${subscriber.webhookId}/test`;
  let eventId = '';
  while (!failsOnce(eventId))
    eventId = requireStatus(await send(world, subscriber.tenant, 'POST', path, {}), 202).body.event_id;
  await beforeRetry(subscriber, eventId);
  await until(`retry of ${eventId}`, async () => subscriber.events.get(eventId));
};

/** The first retry is the lane's. */
export const retryInLane: Pass = (world) => failOnce(world, async () => undefined);

/** A later one is made by the workflow of the subscription. It gets the first one here, which is due after seconds. */
export const retryByWorkflow: Pass = (world) =>
  failOnce(world, async ({ tenant: { orgId }, webhookId, events }, eventId) => {
    const moved = `UPDATE webhook_deliveries SET lane_key = NULL
      WHERE event_id = '${eventId}' AND attempt_count = 1 AND claimed_by = 0 RETURNING 1`;
    const found = await until(`failure of ${eventId}`, async () => {
      if (events.has(eventId)) return 'arrived';
      return (await query(world, moved)).length > 0 ? 'moved' : undefined;
    });
    // The lane has made the retry before this looked, as on a busy machine. The next pass sends another event.
    if (found === 'arrived') return;
    await query(
      world,
      `INSERT INTO outbox (kind, object_id, signal, context, request_id)
       VALUES ('webhook_subscription', '${webhookId}', 'retriesAdded', '{"orgId":"${orgId}"}', 'torture')`,
    );
  });

/** Every dispatcher takes a lane that runs for one that is to be started. */
export const startLanes: Pass = async (world) =>
  void (await query(
    world,
    `INSERT INTO outbox (kind, object_id, context, request_id)
     SELECT 'webhook_lane', lane::text, '{}', 'torture' FROM generate_series(0, ${LANES - 1}) AS lane`,
  ));

/** A failed delivery is pending. */
export const redeliver: Pass = async (world) => {
  const { tenant } = world;
  const path = `/v1/webhooks/${tenant.webhookId}`;
  const { delivery_id: id } = requireStatus(await send(world, tenant, 'POST', `${path}/test`, {}), 200, 202).body;
  requireStatus(await send(world, tenant, 'POST', `${path}/deliveries/${id}/redeliver`, {}), 202);
};

export const replay: Pass = async (world) => {
  const { tenant, webhookId } = await pingNewSubscriber(world);
  const body = { since: new Date(Date.now() - REPLAYED_MS).toISOString(), statuses: ['succeeded'] };
  const path = `/v1/webhooks/${webhookId}`;
  const { replay_id: id } = requireStatus(await send(world, tenant, 'POST', `${path}/replay`, body), 202).body;
  await until(`the end of the replay ${id}`, async () => {
    const { status } = requireStatus(await send(world, tenant, 'GET', `${path}/replays/${id}`), 200).body;
    return status === 'completed' ? true : undefined;
  });
};

/** A subscription of a tenant of its own: an organization has at most twenty. */
export async function subscribeAlone(world: World): Promise<{ readonly tenant: Tenant; readonly webhookId: string }> {
  const tenant = await createTenant(world.deps.http);
  const body = { url: `http://127.0.0.1:9999/${crypto.randomUUID()}`, event_types: ['recipient.deactivated'] };
  const created = requireStatus(await send(world, tenant, 'POST', '/v1/webhooks', body), 201);
  return { tenant, webhookId: created.body.webhook_id };
}

const withWebhook =
  (change: (world: World, tenant: Tenant, path: string) => Promise<void>): Pass =>
  async (world) => {
    const { tenant, webhookId } = await subscribeAlone(world);
    await change(world, tenant, `/v1/webhooks/${webhookId}`);
  };

/** A lane gives a delivery whose secret no key opens to the workflow of its subscription. */
export const handOver = withWebhook(async (world, tenant, path) => {
  const webhookId = path.split('/').at(-1);
  await query(world, `UPDATE webhooks SET secret_sealed = 'lost' WHERE webhook_id = '${webhookId}'`);
  requireStatus(await send(world, tenant, 'POST', `${path}/test`, {}), 200, 202);
  await until(`the hand-over of a delivery to ${webhookId}`, async () => {
    const held = `SELECT 1 FROM webhook_deliveries WHERE webhook_id = '${webhookId}' AND lane_key IS NULL`;
    return (await query(world, held)).length > 0 ? true : undefined;
  });
  requireStatus(await send(world, tenant, 'DELETE', path), 204, 404);
});

/** The deliveries of a subscription end with it. */
export const endDeliveries = withWebhook(async (world, tenant, path) => {
  requireStatus(await send(world, tenant, 'POST', `${path}/test`, {}), 200, 202);
  requireStatus(await send(world, tenant, 'DELETE', path), 204, 404);
  const webhookId = path.split('/').at(-1);
  await until(`the end of the deliveries of ${webhookId}`, async () => {
    const pending = `SELECT 1 FROM webhook_deliveries WHERE webhook_id = '${webhookId}' AND status = 'pending'`;
    return (await query(world, pending)).length === 0 ? true : undefined;
  });
});

export const createWebhook = withWebhook(async (world, tenant, path) => {
  requireStatus(await send(world, tenant, 'GET', path), 200);
  await requireOne(world, tenant, '/v1/webhooks');
});
export const disableWebhook = withWebhook(async (world, tenant, path) => {
  requireStatus(await send(world, tenant, 'PATCH', path, { status: 'disabled' }), 200);
  const { body } = await send(world, tenant, 'GET', path);
  if (body.status !== 'disabled') throw new Error(`the subscription is ${body.status}`);
});
export const deleteWebhook = withWebhook(async (world, tenant, path) => {
  // The answer was lost: the subscription may be gone already.
  requireStatus(await send(world, tenant, 'DELETE', path), 204, 404);
  requireStatus(await send(world, tenant, 'GET', path), 404);
});
export const rotateSecret = withWebhook(async (world, tenant, path) => {
  requireStatus(await send(world, tenant, 'POST', `${path}/rotate-secret`, {}), 200);
});

const withKey =
  (change: (world: World, tenant: Tenant, keyId: string) => Promise<void>): Pass =>
  async (world) => {
    const tenant = await createTenant(world.deps.http);
    const body = { name: 'Torture', scope: 'read' };
    const created = requireStatus(await send(world, tenant, 'POST', `/v1/orgs/${tenant.orgId}/keys`, body), 201);
    await change(world, tenant, created.body.key_id);
  };

const statusOfKey = async (world: World, tenant: Tenant, keyId: string): Promise<string | undefined> => {
  const { body } = await send(world, tenant, 'GET', `/v1/orgs/${tenant.orgId}/keys`);
  return body.find((key: Json) => key.key_id === keyId)?.status;
};

export const createKey = withKey(async (world, tenant, keyId) => {
  const { length } = (await send(world, tenant, 'GET', `/v1/orgs/${tenant.orgId}/keys`)).body;
  // The organization's first key, and this one.
  if (length !== 2) throw new Error(`the organization has ${length} keys`);
  if ((await statusOfKey(world, tenant, keyId)) !== 'active') throw new Error('the key is not active');
});
export const rotateKey = withKey(async (world, tenant, keyId) => {
  // If the answer was lost, the same idempotency key gets it again.
  requireStatus(await send(world, tenant, 'POST', `/v1/orgs/keys/${keyId}/rotate`, {}), 200);
  if ((await statusOfKey(world, tenant, keyId)) !== 'rotated') throw new Error('the key is not rotated');
});
export const revokeKey = withKey(async (world, tenant, keyId) => {
  requireStatus(await send(world, tenant, 'DELETE', `/v1/orgs/keys/${keyId}`), 200);
  if ((await statusOfKey(world, tenant, keyId)) !== 'revoked') throw new Error('the key is not revoked');
});

export const createWallet: Pass = async (world) => {
  const signers = [{ address: '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed' }];
  const tenant = await createTenant(world.deps.http);
  const body = { name: 'Treasury', signers, threshold: 1 };
  requireStatus(await send(world, tenant, 'POST', '/v1/wallets', body), 201);
  await requireOne(world, tenant, '/v1/wallets');
};

export const createOrganization: Pass = async (world) => {
  const tenant = await createTenant(world.deps.http);
  requireStatus(await send(world, tenant, 'GET', `/v1/orgs/${tenant.orgId}`), 200);
};

async function requestCode({ deps: { http } }: World, email: string): Promise<Json> {
  const asked = await http.untilAnswered({ method: 'POST', path: '/consumer/auth/request-otp', body: { email } });
  return requireStatus(asked, 200).body;
}

const someEmail = () => `${crypto.randomUUID()}@example.com`;

export const mailCode: Pass = async (world) => {
  const email = someEmail();
  await requestCode(world, email);
  await until(`the mail to ${email}`, async () => world.mail.messages.find(({ to }) => to.includes(email)));
};

export const signIn: Pass = async (world) => {
  const email = someEmail();
  await until('the sign-in', async () => {
    const { challenge_id, sandbox_code: code } = await requestCode(world, email);
    const body = { challenge_id, code };
    const answer = await world.deps.http.untilAnswered({ method: 'POST', path: '/consumer/auth/verify-otp', body });
    // The answer was lost: the code is used up, and the consumer asks for another one.
    return requireStatus(answer, 200, 401).status === 200 ? true : undefined;
  });
};
