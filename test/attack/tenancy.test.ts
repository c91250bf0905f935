/**
 * For every operation that takes an id, another tenant's object does not exist. The operations are those of the
 * document: one with an id that this file does not know fails here.
 */
import { describe, expect } from 'vitest';
import { newId } from '../../db/id.ts';
import { nameOf, OPERATIONS } from '../contract/operations.ts';
import type { SeenAnswer } from '../support/conformance.ts';
import { digestTables } from '../support/database.ts';
import { FILE } from '../support/fixture.ts';
import type { DescribedOperation } from './document.ts';
import { withAttack } from './fixture.ts';
import { bodyOf, headersOf, type Ids, urlOf } from './sample.ts';
import { type Attack, idsOf, type Tenant } from './world.ts';

/** `victim`: another tenant, whose objects no test changes. */
const test = withAttack().extend('victim', FILE, ({ attack }) => attack.createTenant());

const operationOf = (attack: Attack, name: string): DescribedOperation =>
  attack.operations.find((operation) => operation.name === name) ?? expect.fail(`${name} is not described`);

/** What a caller learns from an answer: everything but the id and the address of the request, and times. */
function factsOf({ statusCode, headers, body }: SeenAnswer) {
  const { 'x-request-id': _id, date: _date, ratelimit: _limit, ...same } = headers;
  const { request_id: _request, instance: _instance, ...problem } = JSON.parse(body);
  return { statusCode, headers: same, problem };
}

const withIdInPath = OPERATIONS.filter(({ path, auth }) => path.includes('{') && auth !== 'none').map(nameOf);

describe.each(withIdInPath)('%s', (name) => {
  test("404 for another tenant's id, as for an unknown id, headers included, and nothing is written", async ({
    api,
    attack,
    tenant,
    victim: standing,
  }) => {
    const operation = operationOf(attack, name);
    // At the end the owner calls it, which changes the object, unless it is a read.
    const victim = operation.method === 'GET' ? standing : await attack.createTenant();
    const parameters = [...operation.path.matchAll(/\{([a-z_]+)\}/g)].map(([, parameter = '']) => parameter);
    const [own, foreign] = [idsOf(tenant, operation), idsOf(victim, operation)];
    const before = await digestTables(api.connection.pool);
    const call = (ids: Ids, by = tenant) =>
      attack.send(operation, by, {
        url: urlOf(operation, { ...own, ...ids }),
        body: bodyOf(operation, own),
        headers: headersOf(operation),
      });
    // First each id alone is the other tenant's, then all of them are.
    const stolen = [...parameters.map((parameter) => [parameter]), parameters];
    for (const names of stolen) {
      const pick = (ids: (parameter: string) => string) =>
        Object.fromEntries(names.map((parameter) => [parameter, ids(parameter)]));
      const theirs = await call(pick((parameter) => foreign[parameter] ?? expect.fail(`no ${parameter} is known`)));
      const nobodys = await call(
        pick((parameter) => (parameter === 'cert_id' ? `CERT-${'0'.repeat(32)}` : sameLength(foreign[parameter]))),
      );
      expect(theirs.statusCode).toBe(404);
      expect(factsOf(theirs)).toEqual(factsOf(nobodys));
      expect(factsOf(theirs).problem).not.toHaveProperty('field');
    }
    expect(await digestTables(api.connection.pool)).toEqual(before);
    expect([401, 403, 404]).not.toContain((await call(foreign, victim)).statusCode);
  });
});

/** An unknown id of the same length, because headers show the length of the body. */
const sameLength = (id = ''): string => (id.startsWith('stl_') ? `stl_${'a'.repeat(id.length - 4)}` : newId());

/** Bodies that use this field need further changes. */
const NAMING: Readonly<Record<string, (body: Record<string, unknown>) => Record<string, unknown>>> = {
  banklink_account_token: ({ card_token: _card, ...body }) => ({ ...body, payment_method: 'ach' }),
  quote_id: ({ corridor: _corridor, amount: _amount, payment_method: _method, payout_rail: _rail, ...body }) => body,
};

/** Fields that look like references to a tenant's object and are not: every caller who knows the value may use it. */
const NO_REFERENCE = ['challenge_id', 'card_token', 'public_token'];
const isReference = (field: string): boolean => /_(id|token)$/.test(field) && !NO_REFERENCE.includes(field);

test("another tenant's id in a body is refused as an unknown id, 404 names its field, and nothing is written", async ({
  api,
  attack,
  tenant,
  victim,
}) => {
  const partners: Ids = victim.partnerIds;
  const seen: string[] = [];
  const notFound: string[] = [];
  for (const operation of attack.operations.filter(({ body, access }) => body && access.auth !== 'signature')) {
    for (const field of Object.keys(operation.body?.properties ?? {}).filter(isReference)) {
      const [own, foreign] = [idsOf(tenant, operation), idsOf(victim, operation)];
      const theirs = foreign[field] ?? partners[field] ?? expect.fail(`no ${field} is known`);
      const send = (value: unknown) => {
        const body = NAMING[field]?.(Object(bodyOf(operation, own))) ?? Object(bodyOf(operation, own));
        return attack.send(operation, tenant, {
          url: urlOf(operation, own),
          body: { ...body, [field]: value },
          headers: headersOf(operation),
        });
      };
      const before = await digestTables(api.connection.pool);
      const [refused, unknown] = [
        await send(theirs),
        await send(field.endsWith('_token') ? `${theirs.slice(0, -2)}AA` : newId()),
      ];
      expect([operation.name, field, refused.statusCode >= 400, factsOf(refused)]).toEqual([
        operation.name,
        field,
        true,
        factsOf(unknown),
      ]);
      expect(await digestTables(api.connection.pool)).toEqual(before);
      const allowed = own[field] === undefined ? undefined : await send(own[field]);
      if (allowed)
        expect([operation.name, field, factsOf(allowed)]).not.toEqual([operation.name, field, factsOf(refused)]);
      seen.push(`${operation.name} ${field}`);
      if (refused.statusCode !== 404) continue;
      expect([operation.name, factsOf(refused).problem]).toMatchObject([operation.name, { code: 'not_found', field }]);
      notFound.push(`${operation.name} ${field}`);
    }
  }
  expect(seen).toEqual(
    expect.arrayContaining([
      'POST /v2/settle recipient_id',
      'POST /v2/settle banklink_account_token',
      'POST /v1/recipients org_id',
    ]),
  );
  expect(notFound).toEqual([
    'POST /v2/settle recipient_id',
    'POST /v1/caribbean/settle recipient_id',
    'POST /v1/kyc/verify recipient_id',
    'POST /v1/kyc/idverify/applicant recipient_id',
    'POST /consumer/transfers quote_id',
    'POST /consumer/transfers recipient_id',
  ]);
});

test("404 for a consumer's object as a partner, and for a partner's as a consumer", async ({ attack, victim }) => {
  const settlements = [
    operationOf(attack, 'GET /v2/settle/{settlement_id}'),
    operationOf(attack, 'GET /v1/caribbean/settlements/{settlement_id}'),
  ];
  for (const operation of settlements) {
    const url = urlOf(operation, victim.consumerIds);
    expect((await attack.send(operation, victim, { url })).statusCode).toBe(404);
  }
  const transfer = operationOf(attack, 'POST /consumer/transfers');
  const sent = { ...victim.consumerIds, recipient_id: victim.partnerIds.recipient_id };
  expect(
    (
      await attack.send(transfer, victim, {
        url: urlOf(transfer),
        body: bodyOf(transfer, sent),
        headers: headersOf(transfer),
      })
    ).statusCode,
  ).toBe(404);
});

/** The lists and reads without an id in their path that show ids of the caller's objects. */
const SHOW_OWN_IDS = [
  ...['GET /v1/me', 'GET /v1/recipients', 'GET /v1/wallets', 'GET /v1/webhooks', 'GET /v1/events'],
  ...['GET /v2/settlements', 'GET /v1/caribbean/settlements'],
  ...['GET /consumer/me', 'GET /consumer/recipients', 'GET /consumer/transfers'],
];

test("every list shows the tenant's own objects and no other's", async ({ attack, tenant, victim }) => {
  const everyId = [victim.partnerIds, victim.consumerIds].flatMap((ids) => Object.values(ids));
  const shown: string[] = [];
  for (const operation of attack.operations.filter(({ method, path }) => method === 'GET' && !path.includes('{'))) {
    const read = async (by: Tenant) => {
      const answer = await attack.send(operation, by, { url: operation.path });
      return answer.statusCode === 200 ? answer.body : '';
    };
    const [theirs, own] = [await read(tenant), await read(victim)];
    expect([operation.name, ...everyId.filter((id) => theirs.includes(id))]).toEqual([operation.name]);
    if (everyId.some((id) => own.includes(id))) shown.push(operation.name);
  }
  expect(new Set(shown)).toEqual(new Set(SHOW_OWN_IDS));
});

test('401 for an API key at consumer operations, and for a session at partner operations', async ({
  attack,
  tenant,
}) => {
  const { partner, sessionToken } = tenant;
  for (const operation of attack.operations.filter(
    ({ access }) => access.auth === 'session' || access.auth === 'api_key',
  )) {
    const own = idsOf(tenant, operation);
    const swapped: Record<string, string> =
      operation.access.auth === 'session'
        ? { authorization: `Bearer ${partner.apiKey}` }
        : { 'x-api-key': sessionToken, authorization: `Bearer ${sessionToken}` };
    const answer = await attack.send(operation, null, {
      url: urlOf(operation, own),
      body: bodyOf(operation, own),
      headers: { ...headersOf(operation), ...swapped },
    });
    expect([operation.name, answer.statusCode, JSON.parse(answer.body).code]).toEqual([
      operation.name,
      401,
      'credential_invalid',
    ]);
  }
});
