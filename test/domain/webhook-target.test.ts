import { describe, expect, test } from 'vitest';
import { targetFault } from '../../domain/webhook-target.ts';
import { words } from '../support/words.ts';

const PUBLIC = { allowLocal: false };
const LOCAL = { allowLocal: true };

describe('URLs that are refused', () => {
  test.each([
    [
      'not https',
      words(`
        http://ok.example/ ftp://ok.example/ file:///etc/passwd gopher://ok.example/ javascript:alert(1) //ok.example/
        https:ok.example https:/ok.example/
      `),
    ],
    [
      'characters that the URL parser would rewrite',
      [
        'https://ok.example\\@127.0.0.1/',
        'https://ok\t.example/',
        'https://ok.example/a b',
        ' https://ok.example/',
        'https://ok.example/\n',
        'https:///ok.example/',
      ],
    ],
    [
      'credentials',
      words(`
        https://user@ok.example/ https://user:secret@ok.example/ https://ok.example%2f@127.0.0.1/ https://@ok.example/
        https://:@ok.example/
      `),
    ],
    ['a fragment', ['https://ok.example/#', 'https://ok.example/#part']],
    [
      'a privileged port',
      words(`
        https://ok.example:80/ https://ok.example:22/ https://ok.example:1023/ https://ok.example:0/
        https://ok.example:65536/
      `),
    ],
    ['too long', [`https://ok.example/${'a'.repeat(2049 - 'https://ok.example/'.length)}`]],
    [
      'no valid domain',
      [
        'https://intranet/',
        'https://a/',
        'https://ok..example/',
        'https://.example/',
        `https://${'a'.repeat(64)}.example/`,
        `https://${`${'a'.repeat(62)}.`.repeat(4)}ex/`,
        'https://a*b.example/',
        'https://a.123/',
      ],
    ],
    [
      'an address',
      words(`
        https://93.184.216.34/ https://127.0.0.1/ https://127.1/ https://2130706433/ https://0x7f000001/
        https://0x7f.1/ https://0177.0.0.1/ https://017700000001/ https://0/ https://127.0.0.1./ https://①②⑦.0.0.1/
        https://127。0。0。1/ https://%31%32%37.0.0.1/ https://[::1]/ https://[::ffff:127.0.0.1]/ https://[::7f00:1]/
        https://[2606:4700::1111]/ https://[fe80::1]/ https://[64:ff9b::7f00:1]/
        https://169.254.169.254/latest/meta-data/ https://0xA9FEA9FE/ https://0251.0376.0251.0376/
      `),
    ],
    [
      'a private name',
      words(`
        https://localhost/ https://LOCALHOST/ https://localhost./ https://a.localhost/ https://printer.local/
        https://db.internal/ https://metadata.google.internal/ https://METADATA.google.INTERNAL./
        https://metadata.goog/ https://metadata.amazonaws.com/ https://metadata/ https://instance-data/
        https://api.svc.cluster.local/ https://kubernetes.default/ https://kubernetes.default.svc/
        https://nas.home.arpa/ https://wiki.corp/ https://x.lan/ https://x.home/ https://x.intranet/ https://x.onion/
        https://localhost.localdomain/
      `),
    ],
  ] as [string, string[]][])('%s', (_, urls) => {
    expect(urls.filter((url) => targetFault(url, PUBLIC) === undefined)).toEqual([]);
  });

  test('all but loopback in the local sandbox, too: plain http goes to no other host', () => {
    const urls = words(`
      http://hooks.partner.example:8080/ http://hooks.partner.example/ http://10.0.0.1:8080/
      http://169.254.169.254:8080/ http://[fe80::1]:8080/ https://db.internal/ http://localhost:80/
      http://u@localhost:8080/ http://93.184.216.34:8080/
    `);
    expect(urls.filter((url) => targetFault(url, LOCAL) === undefined)).toEqual([]);
  });
});

describe('URLs that are accepted', () => {
  test('https with a public name, on port 443 or an unprivileged one', () => {
    const longest = `https://ok.example/${'a'.repeat(2048 - 'https://ok.example/'.length)}`;
    const urls = [
      'https://example.com',
      'https://hooks.partner.example/in?key=1',
      'https://ok.example:443/',
      'https://ok.example:1024/',
      'HTTPS://OK.EXAMPLE:65535/',
      'https://ok.example./',
      longest,
    ];
    expect(urls.filter((url) => targetFault(url, PUBLIC) !== undefined)).toEqual([]);
  });

  test('a name with letters beyond ASCII, also when thousands have been checked', () => {
    const url = 'https://bücher.example/';
    const refused = Array.from({ length: 20_000 }, () => targetFault(url, PUBLIC)).filter(Boolean);
    expect(refused).toEqual([]);
  });

  test('loopback, also by http, only in the local sandbox', () => {
    const urls = ['http://127.0.0.1:8080/', 'http://localhost:8080/x', 'http://[::1]:8080/', 'https://127.0.0.1:8443/'];
    expect(urls.filter((url) => targetFault(url, LOCAL) !== undefined)).toEqual([]);
    expect(urls.filter((url) => targetFault(url, PUBLIC) === undefined)).toEqual([]);
  });
});
