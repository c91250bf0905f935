import { describe, expect, test } from 'vitest';
import { STATUS_OF } from '../../api/http/error-handler.ts';
import { bodyFault, DomainError, ERROR_CODES, ERROR_TEXT, ValidationError } from '../../domain/error.ts';

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

describe('the list of refusals', () => {
  test('has the codes and statuses of the contract, each once', () => {
    const expected = Object.entries(CONTRACT).flatMap(([status, codes]) => codes.map((code) => [code, Number(status)]));
    expect(STATUS_OF).toEqual(Object.fromEntries(expected));
    expect(new Set(ERROR_CODES)).toEqual(new Set(expected.map(([code]) => code)));
    expect(new Set(ERROR_CODES).size).toBe(ERROR_CODES.length);
  });

  test.each(ERROR_CODES)('tells of %s in whole sentences, and one title of its own', (code) => {
    const { title, detail } = ERROR_TEXT[code];
    expect(title).toMatch(/^[A-Z][a-z ]+$/);
    expect(detail).toMatch(/^[A-Z].*\.$/);
    expect(Object.values(ERROR_TEXT).filter((text) => text.title === title)).toHaveLength(1);
  });
});

describe('a refusal', () => {
  test('carries its public text, and its extras apart from it', () => {
    const error = new DomainError('state_conflict', { current_state: 'settled' });
    expect(error).toMatchObject({
      code: 'state_conflict',
      detail: ERROR_TEXT.state_conflict.detail,
      extras: { current_state: 'settled' },
    });
    expect(error.message).not.toContain('settled');
  });

  test('may say more exactly what happened', () => {
    expect(new DomainError('not_found', {}, 'There is no such address.').detail).toBe('There is no such address.');
  });
});

describe('a fault of a request', () => {
  test('names the field, however deep', () => {
    expect(bodyFault('amount', 'must be more than the fees').loc).toEqual(['body', 'amount']);
    expect(bodyFault('bank_details.routing_number', 'must be valid')).toMatchObject({
      loc: ['body', 'bank_details', 'routing_number'],
      type: 'value_error',
    });
  });

  test('is told together with all the others', () => {
    const faults = [bodyFault('amount', 'is too small'), bodyFault('payout_rail', 'is not offered')];
    expect(new ValidationError(faults).faults).toEqual(faults);
    expect(new ValidationError(faults).message).toBe(
      faults.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; '),
    );
  });
});
