/** Names that people read as another one, or that show nothing (contract §1, §6): screened as seen, or refused. */
import { describe, expect } from 'vitest';
import { isScreeningHit } from '../../activities/providers/screening.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createRecipient, recipientBody, settleBody } from '../support/partner.ts';
import { expectInvalid } from '../support/refusal.ts';

const test = withApi().extend('recipientId', FILE, ({ api, partner }) => createRecipient(api, partner));

describe('screening', () => {
  test.for<[string, string]>([
    ['as it is', 'Marcia SANCTIONED Brown'],
    ['in lower case', 'Marcia Sanctioned'],
    ['with a space of no width', 'SANC\u200BTIONED'],
    ['with a soft hyphen and a joiner', 'SAN\u00ADCTI\u200DONED'],
    ['with an override of direction', '\u202ESANCTIONED'],
    ['in full width', 'ＳＡＮＣＴＩＯＮＥＤ'],
    ['in mathematical letters', '𝐒𝐀𝐍𝐂𝐓𝐈𝐎𝐍𝐄𝐃'],
    ['with Cyrillic letters', 'SАNСTIОNЕD'],
    ['with small Cyrillic letters', 'sаnсtiоnеd'],
    ['with Greek letters', 'SANCTIOΝΕD'],
    ['with a small Cyrillic letter whose capital looks alike', 'Sancтioned'],
    ['with small Greek letters whose capitals look alike', 'sancτioνεd'],
    ['with a zero', 'SANCTI0NED'],
    ['with a small L for a capital I', 'SANCTlONED'],
    ['with accents', 'SÁNCTIÖNED'],
    ['with capitals that have strokes', 'SANȻŦƗØNɆĐ'],
    ['with small letters that have strokes', 'sanȼŧɨønɇđ'],
  ])('finds the word %s', ([_case, name]) => {
    expect(isScreeningHit(name)).toBe(true);
  });

  test.for(['Marcia Brown', 'Sanction Ed', 'Renée Müller-Brontë', '王小明', 'Иван Петров', ''])(
    'does not find it in %j',
    (name) => {
      expect(isScreeningHit(name)).toBe(false);
    },
  );
});

/** What shows nothing, or changes the order of what is shown. */
const UNSEEN = {
  'a space of no width': '\u200B',
  'a joiner': '\u200D',
  'an override of direction': '\u202E',
  'an isolate': '\u2066',
  'an Arabic letter mark': '\u061C',
  'a soft hyphen': '\u00AD',
  'a byte order mark': '\uFEFF',
  'a word joiner': '\u2060',
  'a variation selector': '\uFE0F',
  'a Hangul filler': '\u3164',
  'a tag': '\u{E0041}',
  'a line separator': '\u2028',
  'a joiner of graphemes': '\u034F',
  'a filler of Hangul vowels': '\u1160',
  'an inherent vowel of Khmer': '\u17B4',
  'a separator of Mongolian vowels': '\u180E',
  'a Braille pattern without dots': '\u2800',
  'a filler of half width': '\uFFA0',
  'an anchor of an annotation': '\uFFF9',
  'a control of hieroglyphs': '\u{13430}',
  'a control of shorthand': '\u{1BCA0}',
  'a beam of musical notes': '\u{1D173}',
} as const;

describe('a character that is not seen', () => {
  test.for(Object.entries(UNSEEN))(
    'is refused in names and references: %s',
    async ([_name, character], { api, partner, recipientId }) => {
      const value = `Marcia${character}Brown`;
      const headers = { 'idempotency-key': crypto.randomUUID() };
      const post = (url: string, body: object) => api.call(partner, 'POST', url, body, headers);
      await expectInvalid(api, () => post('/v1/recipients', recipientBody({ name: value })), [NAME]);
      await expectInvalid(api, () => api.call(partner, 'PUT', `/v1/recipients/${recipientId}`, { name: value }), [
        NAME,
      ]);
      await expectInvalid(api, () => post('/v1/orgs', { ...ORGANIZATION, name: value }), [NAME]);
      await expectInvalid(api, () => post('/v2/settle', settleBody(recipientId, { reference: value })), [
        ['body.reference', 'value_error'],
      ]);
    },
  );

  test('is named by field and rule, and letters of every script are accepted', async ({ api, partner }) => {
    const post = (name: string) => api.call(partner, 'POST', '/v1/recipients', recipientBody({ name }));
    expect((await post('a\u200Bb')).json()).toEqual({
      detail: [
        {
          loc: ['body', 'name'],
          msg: expect.stringContaining('no invisible character and none that changes the direction of writing'),
          type: 'value_error',
        },
      ],
    });
    for (const name of ['Renée Müller-Brontë', "D'Angelo O’Neil", '王小明', 'محمد علي', 'दीपिका', 'Иван', '🙂'])
      expect([name, (await post(name)).statusCode]).toEqual([name, 201]);
  });
});

const NAME = ['body.name', 'value_error'] as const;
const ORGANIZATION = { country: 'JM', contact_email: 'dev@acme.example' };
