/** The page of errors: every code that a partner can receive, with its status and its public text. */
import { STATUS_OF } from '../../api/http/error-handler.ts';
import { ERROR_CODES, ERROR_TEXT } from '../../domain/error.ts';
import { GENERATED, page, table } from './document.ts';

export function errorPage(): string {
  const codes = [...ERROR_CODES].sort((a, b) => STATUS_OF[a] - STATUS_OF[b]);
  return page(
    GENERATED,
    '# Errors',
    'Every error but 422 is `application/problem+json` (RFC 9457) with `type` (`/problems/<code>`), `title`, `status`, `detail`, `instance`, `code` and `request_id`. Branch on `code`: it is part of the contract, and the texts are not. A 422 is an HTTPValidationError, `{"detail": [{"loc", "msg", "type"}]}`. It lists every fault of the request and repeats no value.',
    table(
      ['Status', '`code`', 'Title', 'Detail'],
      codes.map((code) => [String(STATUS_OF[code]), `\`${code}\``, ERROR_TEXT[code].title, ERROR_TEXT[code].detail]),
    ),
  );
}
