import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addressKind, isSameAddress } from '../../domain/webhook-address.ts';
import { admitsAddress } from '../../domain/webhook-target.ts';
import { property } from '../support/property.ts';
import { words } from '../support/words.ts';

const PUBLIC = { allowLocal: false };
const LOCAL = { allowLocal: true };

describe('addresses that are refused', () => {
  test.each([
    ['0.0.0.0', '0.255.255.255', '10.0.0.0', '10.255.255.255', '100.64.0.0', '100.100.100.200', '100.127.255.255'],
    words('168.63.129.16 169.254.0.0 169.254.169.254 169.254.170.2 169.254.170.23 172.16.0.0 172.31.255.255'),
    words(
      '192.0.0.0 192.0.0.192 192.0.2.1 192.31.196.1 192.52.193.1 192.88.99.1 192.168.0.0 192.168.255.255 192.175.48.1',
    ),
    words('198.18.0.0 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.0 255.255.255.255'),
    words(':: ::ffff:0:0 ::7f00:1 ::a00:1 ::ffff:0:127.0.0.1 64:ff9b::7f00:1 64:ff9b:1::1 100::1 5f00::1 4000::1'),
    words(
      'fc00::1 fd00:ec2::254 fd00:ec2::23 fe80::1 febf::1 fec0::1 ff02::1 fe80::1%eth0 2001::1 2001:1ff::1 2001:db8::1',
    ),
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

  test('loopback, except in the local sandbox', () => {
    for (const address of words('127.0.0.1 127.255.255.255 ::1 0:0:0:0:0:0:0:1 ::ffff:127.0.0.1 ::ffff:7f00:1')) {
      expect(addressKind(address)).toBe('loopback');
      expect([admitsAddress(address, PUBLIC), admitsAddress(address, LOCAL)]).toEqual([false, true]);
    }
  });
});

describe('addresses that are public', () => {
  test('the addresses just outside each refused block', () => {
    const public4 = words(
      '1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 168.63.129.15 168.63.129.17',
    );
    const more4 = words(`
      169.253.255.255 172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0
      223.255.255.255
    `);
    const public6 = words(
      '2000::1 2001:200::1 2606:4700::1111 2a00:1450:4001:81b::200e 2003::1 3ffe::1 ::ffff:93.184.216.34',
    );
    expect([...public4, ...more4, ...public6].filter((address) => addressKind(address) !== 'public')).toEqual([]);
  });

  property([fc.ipV4()])('an IPv4 address and its mapped form have the same kind', (address) => {
    expect(addressKind(`::ffff:${address}`)).toBe(addressKind(address));
    expect(isSameAddress(`::ffff:${address}`, address)).toBe(true);
  });

  property([fc.ipV6()])('no IPv6 address outside 2000::/3 is public, except mapped ones', (address) => {
    const first = Number.parseInt(new URL(`http://[${address}]/`).hostname.slice(1).split(':')[0] || '0', 16);
    const mapped = new URL(`http://[${address}]/`).hostname.startsWith('[::ffff:');
    if (first >> 13 !== 1 && !mapped) expect(addressKind(address)).not.toBe('public');
  });

  test('two spellings of one address are the same address, two addresses are not', () => {
    expect(isSameAddress('2606:4700::1111', '2606:4700:0:0:0:0:0:1111')).toBe(true);
    expect(isSameAddress('93.184.216.34', '93.184.216.35')).toBe(false);
    expect(isSameAddress('', '')).toBe(false);
  });
});
