import { expect, test } from 'vitest';
import { faultOfField } from '../../api/http/request-fault.ts';

test.each([
  ['amount', ['body', 'amount']],
  ['bank_details.routing_number', ['body', 'bank_details', 'routing_number']],
  [null, ['body']],
])('a broken rule about %s is a value_error at %j', (field, loc) => {
  expect(faultOfField({ field, rule: 'must be valid' })).toEqual({
    loc,
    msg: 'Value error, must be valid',
    type: 'value_error',
  });
});
