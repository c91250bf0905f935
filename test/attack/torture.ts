/** Values and bodies that break parsers. Most contain a mark, so that a test finds an answer that repeats them. */

/** In no answer by chance. */
export const MARK = 'zq7kx';

export type Torture = readonly [name: string, value: string];

/** Longer than every text field, shorter than the body limit. */
const LONG = 60_000;

/** Every text field refuses these, or keeps them exactly. */
export const TEXTS: readonly Torture[] = [
  ['nothing', ''],
  ['spaces', '   '],
  ['a space before', ` ${MARK}`],
  ['a space after', `${MARK}\u00a0`],
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
  ['the word null', 'null'],
  ['a prototype', '__proto__'],
];

/** Invalid amounts. */
export const AMOUNTS: readonly Torture[] = [
  ['an exponent', '1e3'],
  ['a leading zero', '01'],
  ['a sign', '+1'],
  ['a negative amount', '-5.00'],
  ['minus zero', '-0'],
  ['no whole part', '.5'],
  ['no fraction', '1.'],
  ['a third digit', '1.005'],
  ['zero', '0'],
  ['zero with decimals', '0.00'],
  ['not a number', 'NaN'],
  ['infinity', 'Infinity'],
  ['far too much', `1${'0'.repeat(30)}`],
  ['just too much', '999999999999999.99'],
  ['full-width digits', '２５０.00'],
  ['Arabic digits', '٢٥٠'],
  ['grouping', '1,000.00'],
  ['grouping by underscore', '1_000'],
  ['hexadecimal', '0x10'],
  ['a space', ' 250.00'],
  ['a line break', '250.00\n'],
  ['a currency', '$250.00'],
];

/** Values of other types, as JSON text. */
export const KINDS: readonly Torture[] = [
  ['null', 'null'],
  ['true', 'true'],
  ['a number', '250.00'],
  ['a number too large', '1e400'],
  ['a number that loses digits', '12345678901234567890123'],
  ['a list', `["${MARK}"]`],
  ['a list of lists', '[[[[]]]]'],
  ['an object', `{"${MARK}":"${MARK}"}`],
  ['an object like text', '{"toString":"x","valueOf":"x","length":5}'],
];

/** Bodies that are not a valid JSON object, as bytes. */
export const BODIES: readonly (readonly [name: string, bytes: Buffer])[] = [
  ['a list', Buffer.from('[]')],
  ['null', Buffer.from('null')],
  ['a text', Buffer.from(`"${MARK}"`)],
  ['a number', Buffer.from('1')],
  ['true', Buffer.from('true')],
  ['half an object', Buffer.from(`{"${MARK}":`)],
  ['text after an object', Buffer.from('{} {}')],
  ['text after an object without a space', Buffer.from(`{}${MARK}`)],
  ['a comma at the end', Buffer.from('{"a":1,}')],
  ['single quotes', Buffer.from(`{'${MARK}':1}`)],
  ['a comment', Buffer.from(`{/* ${MARK} */}`)],
  ['NaN', Buffer.from('{"a":NaN}')],
  ['a name twice', Buffer.from('{"amount":"1.00","amount":"2.00"}')],
  ['a name twice, spelled in two ways', Buffer.from('{"amount":"1.00","\\u0061mount":"2.00"}')],
  ['a nested name twice', Buffer.from('{"a":[{"b":{"c":1,"c":2}}]}')],
  ['objects nested deeper than 32', Buffer.from(`${'{"a":'.repeat(33)}1${'}'.repeat(33)}`)],
  ['lists nested 20 000 times', Buffer.from(`${'['.repeat(20_000)}${']'.repeat(20_000)}`)],
  ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xc3, 0x28, 0x22, 0x7d])],
  ['an overlong encoding', Buffer.from([0x7b, 0x22, 0xc0, 0xaf, 0x22, 0x3a, 0x31, 0x7d])],
  ['a surrogate in UTF-8', Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x7d])],
  ['UTF-16', Buffer.from('\ufeff{"a":1}', 'utf16le')],
  ['a NUL inside', Buffer.from('{"a":"\u0000"}')],
  ['NUL bytes', Buffer.alloc(64)],
  ['a lone surrogate as a name', Buffer.from('{"\\ud800":1}')],
  ['a million quotes short of the limit', Buffer.from(`{"a":"${'\\"'.repeat(30_000)}"}`)],
  ['many names', Buffer.from(`{${Array.from({ length: 5_000 }, (_, index) => `"n${index}":1`).join()}}`)],
  ['spaces', Buffer.from('   ')],
];

/** Path segments in place of an id. */
export const SEGMENTS: readonly Torture[] = [
  ['NUL', '%00'],
  ['a control character', '%07'],
  ['a line break', '%0d%0aSet-Cookie:%20a=b'],
  ['a slash', 'a%2Fb'],
  ['a parent folder', '..%2f..%2fetc%2fpasswd'],
  ['a dot', '%2e'],
  ['a space', '%20'],
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
  ['an id of zeros', '00000000-0000-0000-0000-000000000000'],
];

/** Query strings. Each has at least one fault for a list. */
export const QUERIES: readonly Torture[] = [
  ['an empty page', 'limit=0'],
  ['a page too long', 'limit=101'],
  ['far too long', 'limit=1000000000'],
  ['a negative limit', 'limit=-1'],
  ['a fraction', 'limit=1.5'],
  ['a word', `limit=${MARK}`],
  ['an exponent', 'limit=1e1'],
  ['a space', 'limit=%201'],
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

/** Values that are not valid idempotency keys, for every header. */
export const HEADER_VALUES: readonly Torture[] = [
  ['nothing', ''],
  ['a space inside', `${MARK} 0123456789abcdef`],
  ['a comma', `${MARK}0123456789abcdef, ${MARK}0123456789abcdef`],
  ['too short', MARK],
  ['too long', MARK.padEnd(129, 'x')],
  ['far too long', MARK.padEnd(8_000, 'x')],
  ['quotes', `"${MARK}0123456789abcdef"`],
  ['not ASCII', `${MARK}0123456789abcd\u00e9`],
  ['a tab', `${MARK}\t0123456789abcdef`],
  ['SQL', `${MARK}'; DROP TABLE settlements; --`],
  ['a script', `<script>${MARK}</script>`],
  ['a path', `../../../../etc/${MARK}`],
];

/** Media types that no operation accepts. */
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
