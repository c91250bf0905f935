/** What operators see of personal data. */
import { expect, test } from 'vitest';
import { maskEmail, maskName, maskPhone, maskUrl } from '../../domain/mask.ts';

test.each([
  [maskName, 'Marcia  Anne Brown', 'M*** A*** B***'],
  [maskName, 'Ærø', 'Æ***'],
  [maskName, '', ''],
  [maskEmail, 'marcia@mail.example', 'm***@mail.example'],
  [maskEmail, '"a@b"@mail.example', '"***@mail.example'],
  [maskEmail, '@mail.example', '***'],
  [maskPhone, '+18765550123', '***23'],
  [maskUrl, 'https://hooks.example/T0/secret?token=1', 'https://hooks.example/***'],
  [maskUrl, 'https://hooks.example/?token=1', 'https://hooks.example/***'],
  [maskUrl, 'https://user:pass@hooks.example:8443/', 'https://hooks.example:8443/'],
])('%o of %j is %j', (mask, given, masked) => {
  expect(mask(given)).toBe(masked);
});
