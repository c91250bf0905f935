/** Values and bodies that break parsers. Most contain a mark, so that a test finds an answer that repeats them. */

/** In no answer by chance. */
export const MARK = 'zq7kx';

/** Every text field refuses these, or keeps them exactly. The longest is longer than every text field. */
export const TEXTS: readonly string[] = [
  ...['', '   ', ` ${MARK}`, `${MARK}\u00a0`, `${MARK}\u0000`, `${MARK}\u0007`, `${MARK}\u007f`, `${MARK}\u0085`],
  ...[`${MARK}\r\nSet-Cookie: a=b`, `${MARK}\u001b[31m`, `${MARK}\u2028`, `\u202e${MARK}`, `${MARK}\u200b`],
  ...[`${MARK}\ud800`, `\udc00${MARK}`, `${MARK}😀`, `${MARK}\u00e9`, `${MARK}e\u0301`, MARK + 'x'.repeat(2_100)],
  ...[`${MARK}'; DROP TABLE settlements; --`, `\${jndi:ldap://${MARK}/a}`, `{{7*7}}${MARK}`, `../../${MARK}`],
  ...[`<script>${MARK}</script>`, `${MARK}%s%n%x`, 'null', '__proto__'],
];

/** Invalid amounts. */
export const AMOUNTS: readonly string[] = [
  ...['', '0', '0.00', '-0', '-5.00', '+1', '01', '.5', '1.', '1.005', '1e3', 'NaN', 'Infinity', '0x10', '$250.00'],
  ...['1,000.00', '1_000', ' 250.00', '250.00\n', '２５０.00', '٢٥٠', `1${'0'.repeat(30)}`, '999999999999999.99'],
];

/** Bodies that are not a JSON object, or none that the service accepts. */
export const BODIES: readonly (readonly [name: string, bytes: Buffer])[] = [
  ...['[]', 'null', `"${MARK}"`, '1', 'true', `{"${MARK}":`, '{} {}', `{}${MARK}`, '{"a":1,}', `{'${MARK}':1}`],
  ...[`{/* ${MARK} */}`, '{"a":NaN}', '{"amount":"1.00","amount":"2.00"}', '{"amount":"1.00","\\u0061mount":"2.00"}'],
  ...[
    '{"a":1e400}',
    '{"amount":12345678901234567890123}',
    '{"a":[{"b":{"c":1,"c":2}}]}',
    '{"a":"\u0000"}',
    '{"\\ud800":1}',
    '   ',
  ],
]
  .map((text) => [text, Buffer.from(text)] as const)
  .concat([
    ['objects nested deeper than 32', Buffer.from(`${'{"a":'.repeat(33)}1${'}'.repeat(33)}`)],
    ['lists nested 20 000 times', Buffer.from(`${'['.repeat(20_000)}${']'.repeat(20_000)}`)],
    ['invalid UTF-8', Buffer.from('{"a":"\xc3\x28"}', 'latin1')],
    ['an overlong encoding', Buffer.from('{"\xc0\xaf":1}', 'latin1')],
    ['a surrogate in UTF-8', Buffer.from('{"a":"\xed\xa0\x80"}', 'latin1')],
    ['UTF-16', Buffer.from('\ufeff{"a":1}', 'utf16le')],
    ['NUL bytes', Buffer.alloc(64)],
    ['a million quotes short of the limit', Buffer.from(`{"a":"${'\\"'.repeat(30_000)}"}`)],
    ['many names', Buffer.from(`{${Array.from({ length: 5_000 }, (_, index) => `"n${index}":1`).join()}}`)],
  ]);

/** Path segments in place of an id. */
export const SEGMENTS: readonly string[] = [
  ...['%00', '%07', '%0d%0aSet-Cookie:%20a=b', 'a%2Fb', '..%2f..%2fetc%2fpasswd', '%2e', '%20', '%F0%9F%98%80'],
  ...['%C3%28', '%zz', '%ED%A0%80', "'%20OR%201=1--", '__proto__', 'constructor', ';a=b', '%7Brecipient_id%7D'],
  ...['01A1FE44-181E-741E-A025-D00000000000', '00000000-0000-0000-0000-000000000000'],
  ...[MARK.padEnd(65, 'x'), MARK.padEnd(8_000, 'x')],
];

/** Query strings. Each has at least one fault for a list. */
export const QUERIES: readonly string[] = [
  ...['limit=0', 'limit=101', 'limit=1000000000', 'limit=-1', 'limit=1.5', `limit=${MARK}`, 'limit=1e1', 'limit=%201'],
  ...['limit=', 'limit=1&limit=2', 'limit[]=1', 'limit=%EF%BC%91', 'offset=1000001', 'offset=-1', 'offset=%00'],
  ...['offset=%C3%28', '__proto__=1', '__proto__[limit]=1', 'constructor=1', `${MARK}=1`],
];

/** Values that are not valid idempotency keys, for every header. */
export const HEADER_VALUES: readonly string[] = [
  ...['', MARK, `${MARK} 0123456789abcdef`, `${MARK}\t0123456789abcdef`, `"${MARK}0123456789abcdef"`],
  ...[MARK.padEnd(129, 'x'), MARK.padEnd(8_000, 'x'), `${MARK}0123456789abcd\u00e9`],
  ...[`${MARK}0123456789abcdef, ${MARK}0123456789abcdef`, `../../../../etc/${MARK}`],
  ...[`${MARK}'; DROP TABLE settlements; --`, `<script>${MARK}</script>`],
];

/** Media types that no operation accepts. */
export const MEDIA_TYPES: readonly string[] = [
  ...[
    `text/${MARK}`,
    'text/plain',
    'text/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    '*/*',
  ],
  ...['application', 'application/xml', 'application/jsonp', 'application/json5', 'application/vnd.settlement+json'],
  ...['application/json;', 'application/json; profile=x', 'application/json, application/json'],
  ...['application/json; charset=utf-16', 'application/json; charset=iso-8859-1'],
  'application/json; charset=utf-8; charset=utf-16',
];
