/** Recipients (contract §4). */
import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { openRecipient, type RecipientRow } from '../../db/queries/recipient.ts';
import { recipients } from '../../db/schema/recipient.ts';
import { SealError } from '../../db/seal.ts';
import type { TestApi } from '../support/api.ts';
import { dumpTables, raceBehind } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';
import { createRecipient, type Json, jsonOf, recipientBody } from '../support/partner.ts';
import { expectInvalid, expectRefused, expectUnchanged, faultsOf } from '../support/refusal.ts';
import { eventTypesOf, holdingRecipient } from '../support/verification.ts';

const BANK = { bank_name: 'National Commercial Bank', account_number: 'CANARY40412345', currency: 'JMD' };
const MOBILE = { provider: 'Lynk', phone_number: '+18765550123' };
const FULL_BANK = {
  ...BANK,
  account_type: 'savings',
  branch_code: '00404',
  routing_number: '040-123',
  swift_bic: 'JNCBJMKX',
};

/** `org`: what a new organization does with its recipients. */
const test = withApi().extend('org', async ({ api }) => {
  const caller = await api.createCaller('recipients');
  const create = (body: unknown) => api.call(caller, 'POST', '/v1/recipients', body);
  const at = (recipientId: string) => `/v1/recipients/${recipientId}`;
  return {
    caller,
    create,
    created: async (overrides: Record<string, unknown> = {}): Promise<Json> =>
      jsonOf(await create(recipientBody(overrides))),
    read: (recipientId: string) => api.call(caller, 'GET', at(recipientId)),
    change: (recipientId: string, body: unknown) => api.call(caller, 'PUT', at(recipientId), body),
    deactivate: (recipientId: string) => api.call(caller, 'DELETE', at(recipientId)),
  };
});

const bank = (overrides: Record<string, unknown>) => ({ bank_details: { ...BANK, ...overrides } });

describe('POST /v1/recipients', () => {
  test.for<[string, Record<string, unknown>, [string, string][]]>([
    ['neither details', { bank_details: undefined }, [['body', 'value_error']]],
    ['null for both details', { bank_details: null, mobile_details: null }, [['body', 'value_error']]],
    [
      'an invalid routing number in the US',
      { country: 'US', ...bank({ routing_number: '021000022' }) },
      [['body.bank_details.routing_number', 'value_error']],
    ],
    [
      'an unknown kind and an invalid routing number in the US',
      { kind: 'x', country: 'US', ...bank({ routing_number: '021000022' }) },
      [
        ['body.kind', 'enum'],
        ['body.bank_details.routing_number', 'value_error'],
      ],
    ],
    [
      'details and a country of a wrong type',
      { country: 1, bank_details: 'x' },
      [
        ['body.country', 'string_type'],
        ['body.bank_details', 'dict_type'],
      ],
    ],
  ])('422 for %s, and nothing is written', async ([_case, overrides, faults], { api, org }) => {
    await expectInvalid(api, () => org.create(recipientBody(overrides)), faults);
  });

  test('201 with every field, and of the account number its last four digits', async ({ org }) => {
    const body = {
      org_id: org.caller.orgId,
      kind: 'vendor',
      entity_type: 'business',
      name: 'Réal Ñandú 茶 & Sons',
      country: 'JM',
      email: 'pay@sons.example',
      phone: '+18765550123',
      bank_details: FULL_BANK,
      mobile_details: MOBILE,
      metadata: { 'invoice.no': 'INV-1042', empty: '' },
    };
    const answer = await org.create(body);
    expect(answer.statusCode).toBe(201);
    const { account_number: _number, ...shownBank } = FULL_BANK;
    expect(jsonOf(answer)).toEqual({
      ...body,
      bank_details: { ...shownBank, account_number_last4: '2345' },
      recipient_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      is_active: true,
      verification_status: 'unverified',
      erased_at: null,
      created_at: expect.stringMatching(/Z$/),
      updated_at: jsonOf(answer).created_at,
    });
    expect(jsonOf(await org.read(jsonOf(answer).recipient_id))).toEqual(jsonOf(answer));
  });

  test('201 with missing and null fields as null, and metadata as empty', async ({ org }) => {
    const nothing = { email: null, phone: null, mobile_details: null };
    const [given, leftOut] = await Promise.all([
      org.created({
        ...nothing,
        org_id: null,
        metadata: null,
        ...bank({ account_type: null, branch_code: null, routing_number: null, swift_bic: null }),
      }),
      org.created(),
    ]);
    for (const recipient of [given, leftOut]) {
      expect(recipient).toMatchObject({
        ...nothing,
        metadata: {},
        bank_details: { account_type: null, branch_code: null, routing_number: null, swift_bic: null },
      });
    }
  });

  test.for([
    ['mobile details alone', { bank_details: undefined, mobile_details: MOBILE }],
    ['a valid routing number in the US', { country: 'US', ...bank({ routing_number: '021000021' }) }],
    ['a metadata key that names a property of objects', { metadata: { constructor: 'a', toString: 'b' } }],
  ] as const)('201 for %s', async ([_case, overrides], { org }) => {
    const answer = await org.create(recipientBody(overrides));
    expect([answer.statusCode, answer.body]).toEqual([201, expect.any(String)]);
    if ('metadata' in overrides) expect(jsonOf(answer).metadata).toEqual(overrides.metadata);
  });

  test('personal data is sealed in the database, by a key of this recipient only', async ({ api, org }) => {
    const one = await storedRow(api, (await org.created(bank({}))).recipient_id);
    const two = await storedRow(api, (await org.created(bank({ account_number: 'CANARY99999999' }))).recipient_id);
    expect(await dumpTables(api.connection.pool)).not.toContain('CANARY');
    const accountOf = (row: typeof one) =>
      openRecipient(api.deps.sealer, row).held?.personalData.bankDetails?.account_number;
    expect(accountOf(one)).toBe('CANARY40412345');
    expect(() => accountOf({ ...one, personalDataSealed: two.personalDataSealed })).toThrow(SealError);
    expect(() => accountOf({ ...one, dataKeySealed: two.dataKeySealed })).toThrow(SealError);
  });
});

async function storedRow(api: TestApi, recipientId: string): Promise<RecipientRow> {
  const [row] = await api.connection.db.select().from(recipients).where(eq(recipients.recipientId, recipientId));
  return row ?? expect.fail();
}

const nextOf = (page: { readonly headers: Readonly<Record<string, unknown>> }): string | undefined =>
  /<([^>]+)>; rel="next"/.exec(String(page.headers['link']))?.[1];

describe('GET /v1/recipients', () => {
  test('200 with what the metadata and the other filters select, also after each change of the recipient', async ({
    api,
    partner,
    org,
  }) => {
    const make = async (metadata: Record<string, string>, country = 'JM') =>
      (await org.created({ metadata, country })).recipient_id;
    const [a, b, abroad] = [
      await make({ team: 'a', contract: 'C-7' }),
      await make({ team: 'a' }),
      await make({ team: 'a', contract: 'C-7' }, 'US'),
    ];
    await createRecipient(api, partner, { metadata: { team: 'a' } });
    const list = async (query: string) =>
      jsonOf(await api.call(org.caller, 'GET', `/v1/recipients?${query}`)).map(({ recipient_id: id }: Json) => id);
    expect(await list('metadata[team]=a')).toEqual([abroad, b, a]);
    expect(await list('metadata[team]=a&metadata[contract]=C-7')).toEqual([abroad, a]);
    expect(await list('metadata[team]=a&country=JM&limit=1')).toEqual([b]);
    expect(await list('metadata[team]=b')).toEqual([]);
    await org.change(b, { metadata: { team: 'b' } });
    await org.deactivate(a);
    expect(await list('metadata[team]=b')).toEqual([b]);
    expect(await list('metadata[team]=a')).toEqual([abroad, a]);
    expect(await list('metadata[team]=a&is_active=true&verification_status=unverified')).toEqual([abroad]);
    const plain = await make({});
    await org.change(plain, { metadata: { team: 'c' } });
    expect(await list('metadata[team]=c')).toEqual([plain]);
    await org.change(plain, { metadata: {} });
    expect(await list('metadata[team]=c')).toEqual([]);
    const { rows } = await api.connection.pool.query<{ stale: number }>(
      `SELECT count(*)::int AS stale FROM recipient_metadata m
       FULL JOIN (SELECT org_id, recipient_id, entry.* FROM recipients CROSS JOIN jsonb_each_text(metadata) AS entry) r
         USING (org_id, recipient_id, key, value)
       WHERE m.is_active IS NULL OR r.key IS NULL`,
    );
    expect(rows).toEqual([{ stale: 0 }]);
  });

  test('422 for a filter by metadata that no recipient can have', async ({ api, partner }) => {
    const answer = await api.call(partner, 'GET', '/v1/recipients?metadata[__proto__]=x');
    expect([answer.statusCode, faultsOf(answer)]).toEqual([422, [['query.metadata[__proto__]', 'extra_forbidden']]]);
  });

  test.for(['/v1/recipients?limit=2', '/v1/recipients?limit=2&offset=0'])(
    '200 with pages, newest first, that have each own recipient once, from %s',
    async (first, { api, partner, org }) => {
      await createRecipient(api, partner);
      const ids: string[] = [];
      for (let index = 0; index < 5; index += 1) ids.unshift((await org.created()).recipient_id);
      await org.deactivate(ids[2] ?? '');
      const seen: string[] = [];
      for (let url: string | undefined = first; url !== undefined; ) {
        const page = await api.call(org.caller, 'GET', url);
        expect(page.headers['x-total-count']).toBe('5');
        seen.push(...jsonOf(page).map((recipient: Json) => recipient.recipient_id));
        url = nextOf(page);
      }
      expect(seen).toEqual(ids);
    },
  );

  test("200 without a foreign recipient for another organization's cursor", async ({ api, partner, org }) => {
    for (let index = 0; index < 2; index += 1) await createRecipient(api, partner);
    const url = nextOf(await api.call(partner, 'GET', '/v1/recipients?limit=1')) ?? '';
    expect(jsonOf(await api.call(org.caller, 'GET', url))).toEqual([]);
  });
});

describe('PUT /v1/recipients/{recipient_id}', () => {
  test('422 for an invalid routing number if the stored country is US', async ({ org }) => {
    const { recipient_id } = await org.created({ country: 'US' });
    expect(faultsOf(await org.change(recipient_id, bank({ routing_number: '021000022' })))).toEqual([
      ['body.bank_details.routing_number', 'value_error'],
    ]);
    expect((await org.change(recipient_id, bank({ routing_number: '021000021' }))).statusCode).toBe(200);
  });

  test('409 for an inactive recipient, and nothing is written', async ({ api, org }) => {
    const { recipient_id } = await org.created();
    await org.deactivate(recipient_id);
    for (const body of [{ name: 'Another' }, {}])
      await expectRefused(api, () => org.change(recipient_id, body), 409, {
        code: 'state_conflict',
        current_state: 'inactive',
      });
  });

  test.for<[string, Record<string, unknown>, Record<string, unknown>]>([
    ['the name', { name: 'Marcia Campbell' }, { name: 'Marcia Campbell' }],
    ['the e-mail', { email: 'new@acme.example' }, { email: 'new@acme.example' }],
    ['the e-mail away', { email: null }, { email: null }],
    ['the phone away', { phone: null }, { phone: null }],
    ['the bank details away', { bank_details: null }, { bank_details: null }],
    [
      'the mobile details',
      { mobile_details: { ...MOBILE, provider: 'WiPay' } },
      { mobile_details: { ...MOBILE, provider: 'WiPay' } },
    ],
    ['all the metadata, not single keys', { metadata: { b: '2' } }, { metadata: { b: '2' } }],
    ['the metadata away', { metadata: null }, { metadata: {} }],
  ] as const)('200 changes %s and nothing else', async ([_case, body, changed], { org }) => {
    const { updated_at: before, ...recipient } = await org.created({
      email: 'a@acme.example',
      phone: '+18765550123',
      mobile_details: MOBILE,
      metadata: { a: '1' },
    });
    const answer = await org.change(recipient.recipient_id, body);
    expect(answer.statusCode).toBe(200);
    const { updated_at: after, ...rest } = jsonOf(answer);
    expect(rest).toEqual({ ...recipient, ...changed });
    expect(after >= before).toBe(true);
    expect(jsonOf(await org.read(recipient.recipient_id))).toEqual(jsonOf(answer));
  });

  test('200 without any field, and nothing is written', async ({ api, org }) => {
    const recipient = await org.created();
    await expectUnchanged(api.connection.pool, async () => {
      const answer = await org.change(recipient.recipient_id, {});
      expect([answer.statusCode, jsonOf(answer)]).toEqual([200, recipient]);
    });
  });

  test('200 merges the details: what is absent stays, null clears, and the number need not be sent again', async ({
    api,
    org,
  }) => {
    const { recipient_id, ...recipient } = await org.created({
      bank_details: { ...FULL_BANK, account_number: 'CANARY00007777' },
      mobile_details: MOBILE,
    });
    const sealed = async () =>
      openRecipient(api.deps.sealer, await storedRow(api, recipient_id)).held?.personalData.bankDetails?.account_number;
    const steps: [Record<string, unknown>, Record<string, unknown>, string][] = [
      [{ branch_code: '00405' }, { branch_code: '00405' }, 'CANARY00007777'],
      [{ bank_name: 'JN Bank', account_type: null }, { bank_name: 'JN Bank', account_type: null }, 'CANARY00007777'],
      [{ account_number: 'CANARY00008888' }, { account_number_last4: '8888' }, 'CANARY00008888'],
      [{}, {}, 'CANARY00008888'],
    ];
    let expected = recipient.bank_details;
    for (const [sent, changed, number] of steps) {
      expected = { ...expected, ...changed };
      const answer = await org.change(recipient_id, { bank_details: sent });
      expect(jsonOf(answer)).toMatchObject({ bank_details: expected, mobile_details: MOBILE });
      expect(jsonOf(answer).bank_details).toEqual(expected);
      expect(await sealed()).toBe(number);
    }
    const moved = await org.change(recipient_id, { mobile_details: { provider: 'WiPay' } });
    expect(jsonOf(moved).mobile_details).toEqual({ ...MOBILE, provider: 'WiPay' });
  });

  test('422 if what results is not complete, and nothing is written', async ({ org }) => {
    const { recipient_id } = await org.created({ bank_details: null, mobile_details: MOBILE });
    const before = jsonOf(await org.read(recipient_id));
    expect(faultsOf(await org.change(recipient_id, { bank_details: { branch_code: '00405' } }))).toEqual([
      ['body.bank_details.bank_name', 'missing'],
      ['body.bank_details.account_number', 'missing'],
      ['body.bank_details.currency', 'missing'],
    ]);
    expect(faultsOf(await org.change(recipient_id, { mobile_details: { provider: null } }))).toEqual([
      ['body.mobile_details.provider', 'string_type'],
    ]);
    expect(jsonOf(await org.read(recipient_id))).toEqual(before);
  });

  test('422 for one of two changes at once that would remove all details', async ({ api, org }) => {
    const { recipient_id } = await org.created({ mobile_details: MOBILE });
    const answers = await raceBehind(api.connection.pool, holdingRecipient(recipient_id), [
      () => org.change(recipient_id, { bank_details: null }),
      () => org.change(recipient_id, { mobile_details: null }),
    ]);
    expect(answers.map(({ statusCode }) => statusCode).sort((a, b) => a - b)).toEqual([200, 422]);
  });

  test('200 for two changes of different fields at once, and both are kept', async ({ api, org }) => {
    const { recipient_id } = await org.created();
    await raceBehind(api.connection.pool, holdingRecipient(recipient_id), [
      () => org.change(recipient_id, { email: 'b@acme.example' }),
      () => org.change(recipient_id, { phone: '+18765550123' }),
    ]);
    expect(jsonOf(await org.read(recipient_id))).toMatchObject({ email: 'b@acme.example', phone: '+18765550123' });
  });
});

describe('DELETE /v1/recipients/{recipient_id}', () => {
  test('200 with the inactive recipient, which can still be read and listed', async ({ api, org }) => {
    const { updated_at: _before, ...recipient } = await org.created();
    const nudges = api.nudges();
    const answer = await org.deactivate(recipient.recipient_id);
    expect([answer.statusCode, api.nudges()]).toEqual([200, nudges + 1]);
    expect(jsonOf(answer)).toEqual({ ...recipient, is_active: false, updated_at: expect.any(String) });
    expect(jsonOf(await org.read(recipient.recipient_id))).toEqual(jsonOf(answer));
    expect(jsonOf(await api.call(org.caller, 'GET', '/v1/recipients'))).toEqual([jsonOf(answer)]);
  });

  test('200 for the second time, unchanged and without an event', async ({ api, org }) => {
    const { recipient_id } = await org.created();
    const first = await org.deactivate(recipient_id);
    await expectUnchanged(api.connection.pool, async () => {
      const again = await org.deactivate(recipient_id);
      expect([again.statusCode, jsonOf(again)]).toEqual([200, jsonOf(first)]);
    });
  });

  test('200 and an event of the recipient as it then is, if it is changed while the deactivation waits', async ({
    api,
    org,
  }) => {
    const { recipient_id } = await org.created();
    const [answer] = await raceBehind(
      api.connection.pool,
      {
        ...holdingRecipient(recipient_id),
        change: (holder) =>
          holder.query(`UPDATE recipients SET verification_status = 'verified' WHERE recipient_id = $1`, [
            recipient_id,
          ]),
      },
      [() => org.deactivate(recipient_id)],
    );
    expect(answer?.statusCode).toBe(200);
    const verified = { is_active: false, verification_status: 'verified' };
    const events = await api.call(org.caller, 'GET', `/v1/events?object_id=${recipient_id}`);
    expect(jsonOf(events)).toMatchObject([{ sequence: 1, data: verified }]);
  });

  test('200 three times at once, with one deactivation and one event', async ({ api, org }) => {
    const { recipient_id } = await org.created();
    const answers = await raceBehind(
      api.connection.pool,
      holdingRecipient(recipient_id),
      [1, 2, 3].map(() => () => org.deactivate(recipient_id)),
    );
    expect(new Set(answers.map(({ statusCode, body }) => `${statusCode} ${body}`)).size).toBe(1);
    expect(await eventTypesOf(api, recipient_id)).toEqual(['recipient.deactivated']);
  });
});
