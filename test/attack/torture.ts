/** Values and bodies that break things elsewhere. Each carries a mark, so that an answer which repeats it is found. */

/** Stands in no answer of its own. */
export const MARK = 'zq7kx';

export type Torture = readonly [name: string, value: string];

/** Longer than any text of the interface, shorter than the body limit. */
const LONG = 60_000;

/** What every text refuses, or gives back exactly as it was. */
export const TEXTS: readonly Torture[] = [
  ['nothing', ''],
  ['blanks', '   '],
  ['a blank before', ` ${MARK}`],
  ['a blank after', `${MARK}\u00a0`],
  ['a character too many', MARK + 'x'.repeat(2_100)],
  ['far too much', MARK + 'x'.repeat(LONG)],
  ['NUL', `${MARK}\u0000`],
  ['a control character', `${MARK}\u0007`],
  ['DEL', `${MARK}\u007f`],
  ['a C1 control', `${MARK}\u0085`],
  ['a line break', `${MARK}\r\nSet-Cookie: a=b`],
  ['a terminal escape', `${MARK}\u001b[31m`],
  ['a line separator', `${MARK}\u2028`],
  ['text from right to left', `\u202e${MARK}`],
  ['a zero width', `${MARK}\u200b`],
  ['a lone high surrogate', `${MARK}\ud800`],
  ['a lone low surrogate', `\udc00${MARK}`],
  ['an emoji', `${MARK}😀`],
  ['composed', `${MARK}\u00e9`],
  ['decomposed', `${MARK}e\u0301`],
  ['SQL', `${MARK}'; DROP TABLE settlements; --`],
  ['a lookup', `\${jndi:ldap://${MARK}/a}`],
  ['a template', `{{7*7}}${MARK}`],
  ['a path', `../../${MARK}`],
  ['a script', `<script>${MARK}</script>`],
  ['a format', `${MARK}%s%n%x`],
  ['null in words', 'null'],
  ['a prototype', '__proto__'],
];

/** What no amount is. */
export const AMOUNTS: readonly Torture[] = [
  ['an exponent', '1e3'],
  ['a leading zero', '01'],
  ['a sign', '+1'],
  ['less than nothing', '-5.00'],
  ['minus nothing', '-0'],
  ['no whole part', '.5'],
  ['no fraction', '1.'],
  ['a third digit', '1.005'],
  ['nothing', '0'],
  ['nothing in full', '0.00'],
  ['no number', 'NaN'],
  ['without end', 'Infinity'],
  ['far too much', `1${'0'.repeat(30)}`],
  ['just too much', '999999999999999.99'],
  ['full-width digits', '２５０.00'],
  ['Arabic digits', '٢٥٠'],
  ['grouping', '1,000.00'],
  ['grouping by underscore', '1_000'],
  ['hexadecimal', '0x10'],
  ['a blank', ' 250.00'],
  ['a line break', '250.00\n'],
  ['a currency', '$250.00'],
];

/** Values of the wrong kind, as they stand in the text of a body. */
export const KINDS: readonly Torture[] = [
  ['null', 'null'],
  ['true', 'true'],
  ['a number', '250.00'],
  ['a number without end', '1e400'],
  ['a number that loses digits', '12345678901234567890123'],
  ['a list', `["${MARK}"]`],
  ['a list of lists', '[[[[]]]]'],
  ['an object', `{"${MARK}":"${MARK}"}`],
  ['an object like text', '{"toString":"x","valueOf":"x","length":5}'],
];

/** Bodies that are no JSON object of the interface, as bytes. */
export const BODIES: readonly (readonly [name: string, bytes: Buffer])[] = [
  ['a list', Buffer.from('[]')],
  ['null', Buffer.from('null')],
  ['a text', Buffer.from(`"${MARK}"`)],
  ['a number', Buffer.from('1')],
  ['true', Buffer.from('true')],
  ['half an object', Buffer.from(`{"${MARK}":`)],
  ['what follows an object', Buffer.from('{} {}')],
  ['what follows an object without a blank', Buffer.from(`{}${MARK}`)],
  ['a comma at the end', Buffer.from('{"a":1,}')],
  ['single quotes', Buffer.from(`{'${MARK}':1}`)],
  ['a comment', Buffer.from(`{/* ${MARK} */}`)],
  ['NaN', Buffer.from('{"a":NaN}')],
  ['a name twice', Buffer.from('{"amount":"1.00","amount":"2.00"}')],
  ['a name twice, spelled in two ways', Buffer.from('{"amount":"1.00","\\u0061mount":"2.00"}')],
  ['a name twice, deep within', Buffer.from('{"a":[{"b":{"c":1,"c":2}}]}')],
  ['objects nested deeper than 32', Buffer.from(`${'{"a":'.repeat(33)}1${'}'.repeat(33)}`)],
  ['lists nested 20 000 times', Buffer.from(`${'['.repeat(20_000)}${']'.repeat(20_000)}`)],
  ['bytes that are no UTF-8', Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xc3, 0x28, 0x22, 0x7d])],
  ['an overlong encoding', Buffer.from([0x7b, 0x22, 0xc0, 0xaf, 0x22, 0x3a, 0x31, 0x7d])],
  ['a surrogate in UTF-8', Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x7d])],
  ['UTF-16', Buffer.from('\ufeff{"a":1}', 'utf16le')],
  ['a NUL within', Buffer.from('{"a":"\u0000"}')],
  ['NUL bytes', Buffer.alloc(64)],
  ['a lone surrogate as a name', Buffer.from('{"\\ud800":1}')],
  ['a million quotes short of the limit', Buffer.from(`{"a":"${'\\"'.repeat(30_000)}"}`)],
  ['many names', Buffer.from(`{${Array.from({ length: 5_000 }, (_, index) => `"n${index}":1`).join()}}`)],
  ['blanks', Buffer.from('   ')],
];

/** What the path of an operation can be made of instead of an id. */
export const SEGMENTS: readonly Torture[] = [
  ['NUL', '%00'],
  ['a control character', '%07'],
  ['a line break', '%0d%0aSet-Cookie:%20a=b'],
  ['a slash', 'a%2Fb'],
  ['a step upwards', '..%2f..%2fetc%2fpasswd'],
  ['a dot', '%2e'],
  ['a blank', '%20'],
  ['a character too many', MARK.padEnd(65, 'x')],
  ['eight thousand characters', MARK.padEnd(8_000, 'x')],
  ['an emoji', '%F0%9F%98%80'],
  ['no UTF-8', '%C3%28'],
  ['no percent encoding', '%zz'],
  ['a surrogate', '%ED%A0%80'],
  ['SQL', "'%20OR%201=1--"],
  ['a prototype', '__proto__'],
  ['a constructor', 'constructor'],
  ['a semicolon', ';a=b'],
  ['a placeholder', '%7Brecipient_id%7D'],
  ['an id in upper case', '01A1FE44-181E-741E-A025-D00000000000'],
  ['an id of nothing', '00000000-0000-0000-0000-000000000000'],
];

/** Query strings, each with one fault at least for a list. */
export const QUERIES: readonly Torture[] = [
  ['no page', 'limit=0'],
  ['a page too long', 'limit=101'],
  ['far too long', 'limit=1000000000'],
  ['less than nothing', 'limit=-1'],
  ['a fraction', 'limit=1.5'],
  ['a word', `limit=${MARK}`],
  ['an exponent', 'limit=1e1'],
  ['a blank', 'limit=%201'],
  ['nothing', 'limit='],
  ['two values', 'limit=1&limit=2'],
  ['a list', 'limit[]=1'],
  ['full-width digits', 'limit=%EF%BC%91'],
  ['an offset too far', 'offset=1000001'],
  ['an offset before the first', 'offset=-1'],
  ['NUL', 'offset=%00'],
  ['no UTF-8', 'offset=%C3%28'],
  ['a prototype', '__proto__=1'],
  ['a prototype as an object', '__proto__[limit]=1'],
  ['a constructor', 'constructor=1'],
  ['an unknown parameter', `${MARK}=1`],
];

/** What no idempotency key is, and what every other header has to live with; as it can be sent. */
export const HEADER_VALUES: readonly Torture[] = [
  ['nothing', ''],
  ['a blank within', `${MARK} 0123456789abcdef`],
  ['a comma', `${MARK}0123456789abcdef, ${MARK}0123456789abcdef`],
  ['too short', MARK],
  ['too long', MARK.padEnd(129, 'x')],
  ['far too long', MARK.padEnd(8_000, 'x')],
  ['quotes', `"${MARK}0123456789abcdef"`],
  ['no ASCII', `${MARK}0123456789abcd\u00e9`],
  ['a tab', `${MARK}\t0123456789abcdef`],
  ['SQL', `${MARK}'; DROP TABLE settlements; --`],
  ['a script', `<script>${MARK}</script>`],
  ['a path', `../../../../etc/${MARK}`],
];

/** Media types that no operation takes. */
export const MEDIA_TYPES: readonly string[] = [
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'text/plain',
  'text/json',
  'application/vnd.settlement+json',
  'application/jsonp',
  'application/json5',
  'application/xml',
  'application/json; charset=utf-16',
  'application/json; charset=iso-8859-1',
  'application/json; charset=utf-8; charset=utf-16',
  'application/json; profile=x',
  'application/json, application/json',
  'application/json;',
  'application',
  '*/*',
];
