import { fc, test } from '@fast-check/vitest';
import { describe, expect } from 'vitest';
import { ATTEMPTS_MAX, hasFailedTooLong, placeWaitMs, RETRY_STEPS_MS, retryDelayMs } from '../../domain/webhook.ts';
import { addressKind, isSameAddress } from '../../domain/webhook-address.ts';
import { admitsAddress, targetFault } from '../../domain/webhook-target.ts';

const HOUR_MS = 3_600_000;
const PUBLIC = { allowLocal: false };
const LOCAL = { allowLocal: true };

describe('addresses that are refused', () => {
  test.each([
    ['0.0.0.0', '0.255.255.255', '10.0.0.0', '10.255.255.255', '100.64.0.0', '100.100.100.200', '100.127.255.255'],
    [
      '168.63.129.16',
      '169.254.0.0',
      '169.254.169.254',
      '169.254.170.2',
      '169.254.170.23',
      '172.16.0.0',
      '172.31.255.255',
    ],
    [
      '192.0.0.0',
      '192.0.0.192',
      '192.0.2.1',
      '192.31.196.1',
      '192.52.193.1',
      '192.88.99.1',
      '192.168.0.0',
      '192.168.255.255',
      '192.175.48.1',
    ],
    [
      '198.18.0.0',
      '198.19.255.255',
      '198.51.100.1',
      '203.0.113.1',
      '224.0.0.1',
      '239.255.255.255',
      '240.0.0.0',
      '255.255.255.255',
    ],
    [
      '::',
      '::ffff:0:0',
      '::7f00:1',
      '::a00:1',
      '::ffff:0:127.0.0.1',
      '64:ff9b::7f00:1',
      '64:ff9b:1::1',
      '100::1',
      '5f00::1',
      '4000::1',
    ],
    [
      'fc00::1',
      'fd00:ec2::254',
      'fd00:ec2::23',
      'fe80::1',
      'febf::1',
      'fec0::1',
      'ff02::1',
      'fe80::1%eth0',
      '2001::1',
      '2001:1ff::1',
      '2001:db8::1',
    ],
    ['2002:7f00:1::', '2620:4f:8000::1', '3fff::1', '::ffff:10.0.0.1', '::ffff:a9fe:a9fe', '::FFFF:192.168.1.1'],
    [
      '',
      'localhost',
      '1.2.3',
      '1.2.3.4.5',
      '01.2.3.4',
      '256.1.1.1',
      '1.2.3.4 ',
      ':::',
      '1::2::3',
      '2000:::1',
      '12345::',
      '2000::1.2.3',
      '::ffff:1.2.3.256',
    ],
  ])('%s and its neighbours', (...addresses) => {
    expect(addresses.filter((address) => admitsAddress(address, PUBLIC))).toEqual([]);
    expect(addresses.filter((address) => admitsAddress(address, LOCAL))).toEqual([]);
  });

  test('loopback, but for the local sandbox', () => {
    for (const address of [
      '127.0.0.1',
      '127.255.255.255',
      '::1',
      '0:0:0:0:0:0:0:1',
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
    ]) {
      expect(addressKind(address)).toBe('loopback');
      expect([admitsAddress(address, PUBLIC), admitsAddress(address, LOCAL)]).toEqual([false, true]);
    }
  });
});

describe('addresses that are public', () => {
  test('those just outside each refused block', () => {
    const public4 = [
      '1.0.0.0',
      '9.255.255.255',
      '11.0.0.0',
      '100.63.255.255',
      '100.128.0.0',
      '126.255.255.255',
      '128.0.0.0',
      '168.63.129.15',
      '168.63.129.17',
    ];
    const more4 = [
      '169.253.255.255',
      '172.15.255.255',
      '172.32.0.0',
      '192.0.1.0',
      '192.167.255.255',
      '192.169.0.0',
      '198.17.255.255',
      '198.20.0.0',
      '223.255.255.255',
    ];
    const public6 = [
      '2000::1',
      '2001:200::1',
      '2606:4700::1111',
      '2a00:1450:4001:81b::200e',
      '2003::1',
      '3ffe::1',
      '::ffff:93.184.216.34',
    ];
    expect([...public4, ...more4, ...public6].filter((address) => addressKind(address) !== 'public')).toEqual([]);
  });

  test.prop([fc.ipV4()])('an IPv4 address is what its mapped form is', (address) => {
    expect(addressKind(`::ffff:${address}`)).toBe(addressKind(address));
    expect(isSameAddress(`::ffff:${address}`, address)).toBe(true);
  });

  test.prop([fc.ipV6()])('no IPv6 address outside 2000::/3 is public, but for the mapped ones', (address) => {
    const first = Number.parseInt(new URL(`http://[${address}]/`).hostname.slice(1).split(':')[0] || '0', 16);
    const mapped = new URL(`http://[${address}]/`).hostname.startsWith('[::ffff:');
    if (first >> 13 !== 1 && !mapped) expect(addressKind(address)).not.toBe('public');
  });

  test('the same address in two spellings is the same, two addresses are not', () => {
    expect(isSameAddress('2606:4700::1111', '2606:4700:0:0:0:0:0:1111')).toBe(true);
    expect(isSameAddress('93.184.216.34', '93.184.216.35')).toBe(false);
    expect(isSameAddress('', '')).toBe(false);
  });
});

describe('URLs that are refused', () => {
  test.each([
    [
      'no https',
      [
        'http://ok.example/',
        'ftp://ok.example/',
        'file:///etc/passwd',
        'gopher://ok.example/',
        'javascript:alert(1)',
        '//ok.example/',
        'https:ok.example',
        'https:/ok.example/',
      ],
    ],
    [
      'spellings that a parser would mend',
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
      [
        'https://user@ok.example/',
        'https://user:secret@ok.example/',
        'https://ok.example%2f@127.0.0.1/',
        'https://@ok.example/',
        'https://:@ok.example/',
      ],
    ],
    ['a fragment', ['https://ok.example/#', 'https://ok.example/#part']],
    [
      'a privileged port',
      [
        'https://ok.example:80/',
        'https://ok.example:22/',
        'https://ok.example:1023/',
        'https://ok.example:0/',
        'https://ok.example:65536/',
      ],
    ],
    ['too long a text', [`https://ok.example/${'a'.repeat(2048)}`]],
    [
      'no domain',
      [
        'https://intranet/',
        'https://a/',
        'https://ok..example/',
        'https://.example/',
        `https://${'a'.repeat(64)}.example/`,
      ],
    ],
    [
      'an address',
      [
        'https://93.184.216.34/',
        'https://127.0.0.1/',
        'https://127.1/',
        'https://2130706433/',
        'https://0x7f000001/',
        'https://0x7f.1/',
        'https://0177.0.0.1/',
        'https://017700000001/',
        'https://0/',
        'https://127.0.0.1./',
        'https://①②⑦.0.0.1/',
        'https://127。0。0。1/',
        'https://%31%32%37.0.0.1/',
        'https://[::1]/',
        'https://[::ffff:127.0.0.1]/',
        'https://[::7f00:1]/',
        'https://[2606:4700::1111]/',
        'https://[fe80::1]/',
        'https://[64:ff9b::7f00:1]/',
        'https://169.254.169.254/latest/meta-data/',
        'https://0xA9FEA9FE/',
        'https://0251.0376.0251.0376/',
      ],
    ],
    [
      'a private name',
      [
        'https://localhost/',
        'https://LOCALHOST/',
        'https://localhost./',
        'https://a.localhost/',
        'https://printer.local/',
        'https://db.internal/',
        'https://metadata.google.internal/',
        'https://METADATA.google.INTERNAL./',
        'https://metadata.goog/',
        'https://metadata.amazonaws.com/',
        'https://metadata/',
        'https://instance-data/',
        'https://api.svc.cluster.local/',
        'https://kubernetes.default/',
        'https://kubernetes.default.svc/',
        'https://nas.home.arpa/',
        'https://wiki.corp/',
        'https://x.lan/',
        'https://x.home/',
        'https://x.intranet/',
        'https://x.onion/',
        'https://localhost.localdomain/',
      ],
    ],
  ] as [string, string[]][])('%s', (_, urls) => {
    expect(urls.filter((url) => targetFault(url, PUBLIC) === undefined)).toEqual([]);
  });

  test('even in the local sandbox: everything but http and loopback', () => {
    const urls = [
      'http://10.0.0.1:8080/',
      'http://169.254.169.254:8080/',
      'http://[fe80::1]:8080/',
      'https://db.internal/',
      'http://localhost:80/',
      'http://u@localhost:8080/',
      'http://93.184.216.34:8080/',
    ];
    expect(urls.filter((url) => targetFault(url, LOCAL) === undefined)).toEqual([]);
  });
});

describe('URLs that are accepted', () => {
  test('public https by name, on its port or an unprivileged one', () => {
    const longest = `https://ok.example/${'a'.repeat(2048 - 'https://ok.example/'.length)}`;
    const urls = [
      'https://example.com',
      'https://hooks.partner.example/in?key=1',
      'https://ok.example:443/',
      'https://ok.example:1024/',
      'HTTPS://OK.EXAMPLE:65535/',
      'https://bücher.example/',
      'https://ok.example./',
      longest,
    ];
    expect(urls.filter((url) => targetFault(url, PUBLIC) !== undefined)).toEqual([]);
  });

  test('http and loopback where the local sandbox allows them', () => {
    const urls = [
      'http://127.0.0.1:8080/',
      'http://localhost:8080/x',
      'http://[::1]:8080/',
      'https://127.0.0.1:8443/',
      'http://hooks.partner.example:8080/',
    ];
    expect(urls.filter((url) => targetFault(url, LOCAL) !== undefined)).toEqual([]);
    expect(urls.filter((url) => targetFault(url, PUBLIC) === undefined)).toEqual([]);
  });
});

describe('the schedule', () => {
  test('has eight attempts over 27 hours, 35 minutes and 5 seconds', () => {
    expect(ATTEMPTS_MAX).toBe(8);
    expect(RETRY_STEPS_MS.reduce((sum: number, step) => sum + step, 0)).toBe(27 * HOUR_MS + 35 * 60_000 + 5_000);
    expect(retryDelayMs(8, 0.5, null)).toBeUndefined();
    expect(retryDelayMs(8, 0.5, 60_000)).toBeUndefined();
  });

  const attempt = fc.integer({ min: 1, max: 7 });
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

  test.prop([attempt, random])('spreads each step by a tenth to either side', (n, r) => {
    const step = RETRY_STEPS_MS[n - 1] ?? 0;
    const delay = retryDelayMs(n, r, null) ?? 0;
    expect(Math.abs(delay - step)).toBeLessThanOrEqual(step / 10);
  });

  test.prop([attempt, random, fc.integer({ min: 0, max: 100 * HOUR_MS })])(
    'honours Retry-After between one step and two, never before the time asked for',
    (n, r, asked) => {
      const step = RETRY_STEPS_MS[n - 1] ?? 0;
      const delay = retryDelayMs(n, r, asked) ?? 0;
      expect(delay).toBeGreaterThanOrEqual(Math.min(2 * step, Math.max(step, asked)));
      expect(delay).toBeLessThanOrEqual(2 * step);
    },
  );

  test('five days of nothing but failure are too long, a millisecond less is not', () => {
    const since = new Date('2026-11-21T08:00:00.000Z');
    expect(hasFailedTooLong(null, since)).toBe(false);
    expect(hasFailedTooLong(since, new Date(since.getTime() + 5 * 24 * HOUR_MS - 1))).toBe(false);
    expect(hasFailedTooLong(since, new Date(since.getTime() + 5 * 24 * HOUR_MS))).toBe(true);
  });

  test('the further behind in the line, the less often a delivery looks by itself', () => {
    expect(placeWaitMs(1, 0)).toBe(15_000);
    expect(placeWaitMs(40, 0)).toBe(150_000);
    expect(placeWaitMs(1_000_000, 0)).toBe(600_000);
    const checksPerSecond = Array.from({ length: 1_000 }, (_, position) => 1_000 / placeWaitMs(position + 1, 0)).reduce(
      (sum, rate) => sum + rate,
      0,
    );
    expect(checksPerSecond).toBeLessThan(4);
  });
});
