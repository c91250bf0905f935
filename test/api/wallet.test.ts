/** Simulated multisig wallets (contract §13). */
import { describe, expect } from 'vitest';
import { checksumAddress, hasValidChecksum } from '../../api/schemas/wallet-address.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { type Json, jsonOf } from '../support/partner.ts';
import { expectInvalid } from '../support/refusal.ts';

const MOMENT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const ZERO = `0x${'0'.repeat(40)}`;

/** The test cases of EIP-55. */
const ALL_CAPS = ['0x52908400098527886E0F7030069857D2E4169EE7', '0x8617E340B3D01FA5F11F306F4090FD50E238070D'];
const ALL_LOWER = ['0xde709f2102306220921060314715629080e2fb77', '0x27b1fdb04752bbc536007a920d24acb045561c26'];
const [A = '', B = '', C = '', D = ''] = [
  '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
  '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
  '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
];
const VECTORS = [...ALL_CAPS, ...ALL_LOWER, A, B, C, D];

const test = withApi({ scope: 'settle' })
  .extend(
    'create',
    FILE,
    ({ api, partner }) =>
      (body: unknown, by = partner) =>
        api.call(by, 'POST', '/v1/wallets', body),
  )
  .extend(
    'made',
    FILE,
    ({ partner, create }) =>
      async (overrides: Record<string, unknown> = {}, by = partner): Promise<Json> => {
        const answer = await create(walletBody(overrides), by);
        if (answer.statusCode !== 201) throw new Error(`wallet refused: ${answer.body}`);
        return jsonOf(answer);
      },
  );

const signers = (...addresses: string[]) => addresses.map((address) => ({ address }));
const walletBody = (overrides: Record<string, unknown> = {}) => ({
  name: 'Treasury',
  signers: signers(A, B, C),
  threshold: 2,
  ...overrides,
});

/** The address with the case of its `place`-th letter changed. */
const withWrongCase = (address: string, place: number): string => {
  let letter = 0;
  return address.replace(/[a-fA-F]/g, (digit) => {
    letter += 1;
    return letter === place ? (digit === digit.toLowerCase() ? digit.toUpperCase() : digit.toLowerCase()) : digit;
  });
};

describe('EIP-55', () => {
  test.each(VECTORS)('%s is what its own digits give, in whichever case they come', (address) => {
    expect([address.toLowerCase(), `0x${address.slice(2).toUpperCase()}`].map(checksumAddress)).toEqual([
      address,
      address,
    ]);
    expect(hasValidChecksum(address)).toBe(true);
  });

  test.each([A, B, C, D])('%s is invalid with any one letter in the other case', (address) => {
    const letters = address.slice(2).match(/[a-fA-F]/g)?.length ?? 0;
    const altered = Array.from({ length: letters }, (_, place) => withWrongCase(address, place + 1));
    expect(new Set(altered).size).toBe(letters);
    expect(altered.filter(hasValidChecksum)).toEqual([]);
  });
});

describe('POST /v1/wallets', () => {
  test.for<[string, unknown, [string, string][]]>([
    ['a threshold of more than there are signers', walletBody({ threshold: 4 }), [['body.threshold', 'value_error']]],
    [
      'an address with a letter that is not a digit',
      walletBody({ signers: signers(A.replace('5a', '5g')), threshold: 1 }),
      [['body.signers.0.address', 'string_pattern_mismatch']],
    ],
    [
      'an invalid checksum',
      walletBody({ signers: signers(A, withWrongCase(B, 3)) }),
      [['body.signers.1.address', 'value_error']],
    ],
    ['the zero address', walletBody({ signers: signers(A, ZERO) }), [['body.signers.1.address', 'value_error']]],
    ['one signer twice', walletBody({ signers: signers(A, B, A) }), [['body.signers.2.address', 'value_error']]],
    [
      'one signer twice in two spellings',
      walletBody({ signers: signers(A, B, A.toLowerCase()) }),
      [['body.signers.2.address', 'value_error']],
    ],
  ])('422 for %s, and nothing is written', async ([_case, body, faults], { api, create }) => {
    await expectInvalid(api, () => create(body), faults);
  });

  test('201 with the given values, as a simulation that is not deployed', async ({ partner, create }) => {
    const named = [{ address: B.toLowerCase(), label: 'Ops' }, { address: A }];
    const answer = await create(walletBody({ signers: named, network: 'base' }));
    expect(answer.statusCode).toBe(201);
    const wallet = jsonOf(answer);
    expect(wallet).toEqual({
      wallet_id: expect.stringMatching(UUID_V7),
      org_id: partner.orgId,
      name: 'Treasury',
      network: 'base',
      address: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
      signers: [
        { address: B.toLowerCase(), label: 'Ops' },
        { address: A, label: null },
      ],
      threshold: 2,
      type: 'multisig',
      simulated: true,
      deployed: false,
      created_at: expect.stringMatching(MOMENT),
    });
    expect(checksumAddress(wallet.address)).toBe(wallet.address);
    expect(answer.headers['location']).toBe(`/v1/wallets/${wallet.wallet_id}`);
  });

  test('201 with ten signers of ten, on ethereum by default', async ({ made }) => {
    const ten = Array.from({ length: 10 }, (_, place) => ({ address: `0x${String(place + 10).repeat(20)}` }));
    expect(await made({ signers: ten, threshold: 10, network: null })).toMatchObject({
      threshold: 10,
      network: 'ethereum',
    });
  });

  test('201 with the same address for any order, spelling and labels of the signers', async ({ made }) => {
    const first = await made();
    const same = [
      await made(),
      await made({ signers: signers(C.toLowerCase(), A, B) }),
      await made({ signers: [{ address: A, label: 'x' }, { address: B }, { address: C }] }),
    ];
    expect(same.map(({ address }) => address)).toEqual(same.map(() => first.address));
    expect(new Set([first, ...same].map(({ wallet_id: id }) => id)).size).toBe(4);
  });

  test('201 with another address for another name, network, threshold, signer or organization', async ({
    api,
    made,
  }) => {
    const { address } = await made();
    const others = [
      await made({ name: 'Treasury 2' }),
      await made({ network: 'polygon' }),
      await made({ threshold: 3 }),
      await made({ signers: signers(A, B, D) }),
      await made({ signers: signers(A, B) }),
      await made({}, await api.createCaller('settle')),
    ];
    expect(new Set([address, ...others.map((wallet) => wallet.address)]).size).toBe(7);
  });
});

describe('reading wallets', () => {
  test('200 with the body of its creation, for every scope', async ({ api, partner, made }) => {
    const wallet = await made();
    const reader = await api.createKey(partner.orgId, 'read');
    const answer = await api.call(reader, 'GET', `/v1/wallets/${wallet.wallet_id}`);
    expect([answer.statusCode, jsonOf(answer)]).toEqual([200, wallet]);
  });

  test("200 with the organization's own wallets, newest first, in pages", async ({ api, made }) => {
    const owner = await api.createCaller('settle');
    const ids: string[] = [];
    for (const name of ['one', 'two', 'three']) ids.push((await made({ name }, owner)).wallet_id);
    const page = await api.call(owner, 'GET', '/v1/wallets?limit=2');
    expect(jsonOf(page).map((wallet: Json) => wallet.wallet_id)).toEqual(ids.slice(1).reverse());
    expect(page.headers['x-total-count']).toBe('3');
    const next = /^<([^>]+)>; rel="next"$/.exec(String(page.headers['link']))?.[1] ?? '';
    for (const url of [next, '/v1/wallets?limit=2&offset=2']) {
      const last = await api.call(owner, 'GET', url);
      expect(jsonOf(last).map((wallet: Json) => wallet.wallet_id)).toEqual(ids.slice(0, 1));
    }
  });
});
