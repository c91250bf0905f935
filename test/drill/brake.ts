/** Drills in which nothing is broken, and somebody must be stopped: the section "Brakes" of docs/operations.md. */
import { createClient } from '../../clients/typescript/index.ts';
import { recipientBody, settleByCard, signUp } from '../../scripts/sandbox/partner.ts';
import { startHttpServer } from '../support/http-server.ts';
import { until } from '../support/wait.ts';
import { type Drill, DrillError, OPERATORS, type Scene } from './scene.ts';

const DELIVERED = { timeoutMs: 30_000 };
const FLOOD = 40;
const [ANA, BO] = OPERATORS;

/** A refused request is counted by its code. */
async function awaitCounted({ world: { prometheus } }: Scene, code: string): Promise<void> {
  const isCounted = `increase(settlement_http_refusals_total{code="${code}"}[5m]) > 0`;
  await until('metric of the refusal', async () => (await prometheus.query(isCounted)).length > 0, DELIVERED);
}

const flood: Drill = {
  name: 'flood',
  title: 'A partner floods us',
  run: async (scene, runbook) => {
    const { log, stack } = scene.world;
    const { baseUrl } = stack;
    const partner = await signUp({ baseUrl });
    const section = runbook.section('A partner floods us');
    const underWay = await settleByCard(partner);
    for (let n = 0; n < FLOOD; n += 1) await partner.client.recipients.create(recipientBody());
    scene.note(`A partner creates ${FLOOD} recipients without a pause. One of its settlements is under way.`);
    scene.requireText('"A partner floods us"', section, 'The lines of the log have the organization of each request');
    const lines = log('api', `"org_id":"${partner.orgId}"`, '/v1/recipients').length;
    if (lines < FLOOD) throw new DrillError(`The API's log has ${lines} lines of that organization.`);
    scene.note(`The API's log has ${lines} lines with its \`org_id\`.`);
    const org = { 'organization id': partner.orgId };
    await scene.runCommand(section, 'show <organization id>', org, /full.*last used/);
    const act = { ...org, name: ANA, why: 'a flood of recipients' };
    const suspend = 'org suspend <organization id> --operator <name> --note <why> --yes';
    await scene.runCommand(section, suspend, act, /is suspended: its reads are answered/);
    const create = () => scene.refusal((client) => client.recipients.create(recipientBody()), partner.apiKey);
    const { code } = await create();
    if (code !== 'organization_suspended') throw new DrillError(`Its next write was answered ${code}.`);
    await partner.client.organizations.get(partner.orgId);
    await partner.client.settlements.wait(underWay, { until: ['settled'], ...DELIVERED });
    scene.note(
      'Its next write gets 403 `organization_suspended`, its reads are answered, its settlement is `settled`.',
    );
    await awaitCounted(scene, 'organization_suspended');
    scene.note('`settlement_http_refusals_total{code="organization_suspended"}` counts it.');
    await scene.runCommand(section, 'list orgs --suspended', {}, new RegExp(`${partner.orgId}.*suspended at`));
    const resume = 'org resume <organization id> --operator <name> --note <why> --yes';
    await scene.runCommand(section, resume, { ...act, why: 'they fixed it' }, /is active/);
    await partner.client.recipients.create(recipientBody());
    scene.note('Its next write is answered (201).');
  },
};

const leakedKey: Drill = {
  name: 'key',
  title: 'A key leaked',
  run: async (scene, runbook) => {
    const { log, stack } = scene.world;
    const { baseUrl } = stack;
    const partner = await signUp({ baseUrl });
    const section = runbook.section('A key leaked');
    const made = await partner.client.apiKeys.create(partner.orgId, { name: 'stolen', scope: 'full' });
    const stolen = await settleByCard(partner, { card_token: 'tok_visa' });
    await partner.client.settlements.wait(stolen, { until: ['settled'], ...DELIVERED });
    scene.note(
      'Somebody else uses the only key of a partner: made another one with it, and had a settlement paid out.',
    );
    const org = { 'organization id': partner.orgId };
    const listed = await scene.runCommand(section, 'list keys --org <organization id>', org, /First key.*last used/);
    const first = listed.split('\n').find((line) => line.includes('First key')) ?? '';
    const key = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(first)?.[0] ?? '';
    const revoke = 'key revoke <key> --operator <name> --note <why> --yes';
    const ended = await scene.runCommand(section, revoke, { key, name: ANA, why: 'on a paste site' }, /First key/);
    if (!ended.includes(made.key_id)) throw new DrillError(`The key that it made is not revoked:\n${ended}`);
    for (const apiKey of [partner.apiKey, made.api_key]) {
      const { status } = await scene.refusal((client) => client.organizations.get(partner.orgId), apiKey);
      if (status !== 401) throw new DrillError(`A revoked key was answered ${status}.`);
    }
    await awaitCounted(scene, 'credential_invalid');
    scene.note('Both keys get 401, and `settlement_http_refusals_total{code="credential_invalid"}` counts it.');
    scene.requireText('"A key leaked"', section, 'from which networks');
    const line = log('api', key, '"client"').at(-1);
    if (line === undefined) throw new DrillError(`No line of the API's log has the key ${key} and its client.`);
    scene.note(`The API's log has its uses: \`"client":"${/"client":"([^"]+)"/.exec(line)?.[1]}"\`.`);
    const act = 'org reissue-key <organization id> --operator <name> --note <why> --yes';
    const why = 'its only key leaked';
    await scene.runCommand(section, act, { ...org, name: ANA, why }, /second|another/i);
    const given = await scene.runCommand(section, act, { ...org, name: BO, why }, /sk_/);
    const fresh = /sk_\w+/.exec(given)?.[0] ?? '';
    await createClient({ baseUrl, apiKey: fresh }).organizations.get(partner.orgId);
    scene.note('The partner reads with the new key (200).');
    const list = 'list settlements --org <organization id>';
    await scene.runCommand(section, list, org, new RegExp(`^${stolen}, status settled`));
  },
};

const stoppedEndpoint: Drill = {
  name: 'endpoint',
  title: 'An endpoint must stop now',
  run: async (scene, runbook) => {
    const { baseUrl } = scene.world.stack;
    const { client, orgId } = await signUp({ baseUrl });
    const section = runbook.section('An endpoint must stop now');
    let requests = 0;
    const endpoint = await startHttpServer((response) => {
      requests += 1;
      response.end('ok');
    });
    try {
      const { webhook_id: webhook } = await client.webhooks.create({ url: `${endpoint.url}/hook`, event_types: ['*'] });
      await client.webhooks.sendTestEvent(webhook);
      await until('first request', () => requests > 0, DELIVERED);
      scene.note('An endpoint of a partner gets events.');
      const org = { 'organization id': orgId };
      await scene.runCommand(section, 'list subscriptions --org <organization id>', org, /enabled/);
      const act = { 'webhook id': webhook, name: ANA, why: 'they called: it is overloaded' };
      const disable = 'webhook disable <webhook id> --operator <name> --note <why> --yes';
      await scene.runCommand(section, disable, act, /no request to .* begins any more/);
      const before = requests;
      await settleByCard({ client });
      const skipped = async () =>
        (await client.webhooks.deliveries(webhook, { status: 'skipped' }).first(1)).length > 0;
      await until('skipped delivery', skipped, DELIVERED);
      const refused = await client.webhooks.update(webhook, { status: 'enabled' }).catch((error: unknown) => error);
      if (!(refused instanceof Error)) throw new DrillError('The partner could enable it.');
      if (requests !== before) throw new DrillError('It got a request after it was disabled.');
      scene.note('A settlement sends it nothing: its events are `skipped`. The partner cannot enable it (409).');
      const enable = 'webhook enable <webhook id> --operator <name> --note <why> --yes';
      await scene.runCommand(section, enable, { ...act, why: 'it is back' }, /is enabled/);
      const retry = 'retry-deliveries --webhook <webhook id> --status skipped --operator <name> --note <why> --yes';
      await scene.runCommand(section, retry, { ...act, why: 'it is back' }, /will be attempted again/);
      await until('request after enabling', () => requests > before, DELIVERED);
      scene.note('It gets what was skipped.');
    } finally {
      await endpoint.close();
    }
  },
};

export const BRAKES: readonly Drill[] = [flood, leakedKey, stoppedEndpoint];
