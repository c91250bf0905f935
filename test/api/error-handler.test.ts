import { expect, test } from 'vitest';
import { STATUS_OF } from '../../api/http/error-handler.ts';
import { faultOfField } from '../../api/http/request-fault.ts';

/** The contract's table (§2), and the signature of §9. */
const CONTRACT = {
  401: ['credential_missing', 'credential_ambiguous', 'credential_invalid', 'signature_invalid'],
  403: ['scope_insufficient', 'organization_mismatch'],
  404: ['not_found'],
  405: ['method_not_allowed'],
  408: ['request_timeout'],
  409: ['idempotency_key_reused', 'state_conflict', 'last_full_key', 'provider_event_conflict'],
  413: ['payload_too_large'],
  415: ['unsupported_media_type'],
  429: ['rate_limited'],
  500: ['internal_error'],
  502: ['remote_environment'],
  503: ['launch_gates_closed', 'local_sandbox_only', 'provider_not_configured', 'temporarily_unavailable'],
};

test('each code has the status of the contract, and there is no other code', () => {
  const expected = Object.entries(CONTRACT).flatMap(([status, codes]) => codes.map((code) => [code, Number(status)]));
  expect(STATUS_OF).toEqual(Object.fromEntries(expected));
});

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
