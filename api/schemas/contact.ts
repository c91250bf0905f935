/** Countries, e-mail addresses and phone numbers (contract §1). */
// Its codes alone: the package's main file reads the names of the countries in 80 languages too.
import countries from 'i18n-iso-countries/index.js';
import { isPossiblePhoneNumber } from 'libphonenumber-js/min';
import { z } from 'zod';
import { abort, pattern, text } from './common.ts';

const COUNTRIES = Object.keys(countries.getAlpha2Codes()).toSorted((a, b) => (a < b ? -1 : 1));

/** `A[DEF…]|B[ABD…]|…`: the assigned codes as the inside of a pattern. */
export const COUNTRY_CODES = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']
  .map((first) => [first, COUNTRIES.filter((code) => code.startsWith(first)).map((code) => code.charAt(1))] as const)
  .filter(([, seconds]) => seconds.length > 0)
  .map(([first, seconds]) => `${first}[${seconds.join('')}]`)
  .join('|');

export const country = (description: string) =>
  z
    .string()
    .regex(/^[A-Z]{2}$/, { abort, error: 'a country code such as JM' })
    .refine((value) => countries.isValid(value), { error: 'must be an ISO 3166-1 alpha-2 country code' })
    .meta({ description, pattern: `^(${COUNTRY_CODES})$`, example: 'JM' });

const EMAIL_LENGTH_MAX = 254;
const LOCAL_PART_LENGTH_MAX = 64;
const LABEL = '[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
/** Of the name before the `@`: dot-atoms of RFC 5322, without quoted names. */
const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
/** Without lookahead; the labels of the host are as in RFC 1035. */
const EMAIL_PATTERN = `^(${ATOM}[.])*${ATOM}@(${LABEL}[.])+[A-Za-z]{2,63}$`;
const EMAIL = new RegExp(EMAIL_PATTERN);
const isEmail = (value: string): boolean => EMAIL.test(value) && value.indexOf('@') <= LOCAL_PART_LENGTH_MAX;
export const email = (description: string) =>
  text(3, EMAIL_LENGTH_MAX)
    .refine(isEmail, { error: 'must be an e-mail address' })
    .meta({ description, format: 'email', pattern: EMAIL_PATTERN, example: 'ops@acme.example' });

const PHONE_LENGTH_MIN = 8;
const PHONE_LENGTH_MAX = 16;
/** Checks the country code and the length. Assigned number ranges change too often to be checked. */
export const phone = (description: string) =>
  pattern(/^\+[1-9][0-9]{6,14}$/, [PHONE_LENGTH_MIN, PHONE_LENGTH_MAX], 'a phone number such as +18765550123')
    .refine((value) => isPossiblePhoneNumber(value), { error: 'must be an E.164 phone number' })
    .meta({ description, example: '+18765550123' });
