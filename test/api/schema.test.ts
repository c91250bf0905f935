/**
 * Rules of a single value that are in no word of the OpenAPI document (contract §1). What the document says of a field
 * is tested by the operation, in test/attack/bounds.test.ts.
 */
import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { faultsOfIssues } from '../../api/http/validation.ts';
import { money, text } from '../../api/schemas/common.ts';
import { country, email, phone } from '../../api/schemas/contact.ts';
import { moment } from '../../api/schemas/page.ts';
import { BankDetailsRequest } from '../../api/schemas/recipient.ts';
import { AdvanceRequest } from '../../api/schemas/test-helper.ts';
import { CreateWebhookRequest } from '../../api/schemas/webhook.ts';

const bic = BankDetailsRequest.shape.swift_bic;

const faultsIn = (schema: z.ZodType, value: unknown) =>
  faultsOfIssues(schema.safeParse(value, { reportInput: true }).error?.issues ?? [], 'body');

const REFUSED: readonly (readonly [what: string, schema: z.ZodType, values: readonly unknown[]])[] = [
  [
    'text',
    text(0, 100),
    [
      ' Marcia',
      'Marcia ',
      'Marcia\u00a0',
      'Marcia\nBrown',
      'Ac\u0000me',
      'a\u0007',
      'a\u007f',
      'a\u0085',
      'Rene\u0301e',
      'Marcia \ud800',
      '\udc00',
    ],
  ],
  [
    'an e-mail address',
    email(''),
    [
      'marcia',
      '@acme.example',
      'marcia@b-.example',
      'marcia@example',
      '.ana@example.com',
      'ana.@example.com',
      'ana..eve@example.com',
      '"ana"@example.com',
      'ana eve@example.com',
      'ana@example.com,eve@example.com',
      'ana@example.com\r\nBcc: eve@example.com',
      `${'a'.repeat(65)}@acme.example`,
    ],
  ],
  ['a phone number', phone(''), ['+99912345678', '+187655501234', '+1876555']],
  ['a country', country(''), ['ZZ', 'XX']],
  ['a moment', moment(), ['2026-11-21', '2026-11-21T08:00:00', '0000-01-01T00:00:00Z', '1969-12-31T23:59:59Z']],
  ['the code of a bank', bic, ['JNCBZZKX']],
  [
    'a duration',
    AdvanceRequest,
    ['P', 'PT', 'PT0S', '5 days', '3d', 'P1M', 'P1Y', 'P367D', 'P1D;', '-P1D', 'P3D '].map((by) => ({ by })),
  ],
];

describe.each(REFUSED)('value_error for what is not %s', (_what, schema, values) => {
  test.each(values)('%j', (value) => {
    expect(faultsIn(schema, value)).toMatchObject([{ type: 'value_error', msg: expect.not.stringContaining('^') }]);
  });
});

const ALLOWED: readonly (readonly [what: string, schema: z.ZodType, values: readonly unknown[]])[] = [
  ['text', text(0, 100), ['', 'Réal Ñandú 茶 & Sons', 'a  b', '🏝']],
  [
    'an e-mail address',
    email(''),
    [
      "o'neil+pay@acme.example",
      'r&d.eu@acme.example',
      "a!#$%&'*+/=?^_`{|}~-@acme.example",
      `${'a'.repeat(64)}@acme.example`,
    ],
  ],
  // Fictional numbers of every destination.
  ['a phone number', phone(''), ['+18765550123', '+18685550100', '+442079460000']],
  ['a moment', moment(), ['1970-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z']],
  ['a duration', AdvanceRequest, [{ by: 'PT0.001S' }, { by: 'P366D' }]],
  ['an amount', money(''), ['1', '250', '250.5', '250.50', '0.99', '9999999']],
];

describe.each(ALLOWED)('no fault for %s', (_what, schema, values) => {
  test.each(values)('%j', (value) => expect(faultsIn(schema, value)).toEqual([]));
});

test("the document's pattern of a webhook's URL takes what the service takes", () => {
  const { url } = CreateWebhookRequest.shape;
  const form = new RegExp(String(url.meta()?.['pattern']));
  const taken = ['https://ok.example/@team', 'https://ok.example?to=a@ok.example', 'HTTPS://OK.EXAMPLE:8443/a?b=/?'];
  const refused = ['https://user@ok.example/', 'https://ok.example/#a', 'https://ok.example/a b', 'ftp://ok.example/'];
  for (const value of taken) expect([value, faultsIn(url, value), form.test(value)]).toEqual([value, [], true]);
  for (const value of refused)
    expect([value, faultsIn(url, value).length, form.test(value)]).toEqual([value, 1, false]);
});

test('the fault of a duration names an example of one, and no pattern', () => {
  expect(faultsIn(AdvanceRequest, { by: '3d' })).toEqual([
    { loc: ['body', 'by'], msg: 'Value error, must be an ISO 8601 duration such as P3D', type: 'value_error' },
  ]);
});
