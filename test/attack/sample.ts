/** A valid request for every operation. A test makes one change in it, so the change is the only fault. */
import { newId } from '../../db/id.ts';
import { type DescribedOperation, placesIn, sampleOf, withValue } from './document.ts';

/** Optional fields that a valid body needs by rules across fields, which the schema does not contain. */
const WANTED: Readonly<Record<string, readonly string[]>> = {
  'POST /v2/settle': ['card_token'],
  'POST /v1/recipients': ['bank_details'],
  'POST /consumer/recipients': ['bank_details'],
  'POST /consumer/auth/request-otp': ['email'],
  'POST /consumer/transfers': ['corridor', 'amount', 'payment_method', 'payout_rail', 'card_token'],
};

/** An unknown id of the valid form. */
const unknownId = (name: string): string =>
  name === 'cert_id' ? `CERT-${newId().replaceAll('-', '').toUpperCase()}` : newId();

export type Ids = Readonly<Record<string, string>>;

/** The URL of the operation with these ids in path and query. Every other id is unknown. */
export function urlOf({ path, parameters }: DescribedOperation, ids: Ids = {}): string {
  const address = path.replace(/\{([a-z_]+)\}/g, (_, name: string) => encodeURIComponent(ids[name] ?? unknownId(name)));
  const query = new URLSearchParams();
  for (const { in: place, name, required } of parameters)
    if (place === 'query' && required) query.set(name, ids[name] ?? unknownId(name));
  return query.size === 0 ? address : `${address}?${query}`;
}

/**
 * A valid body, with these values for fields of these names, and with the `wanted` optional fields.
 */
export const bodyOf = ({ name, body }: DescribedOperation, ids: Ids = {}, wanted: readonly string[] = []): unknown =>
  body && sampleOf(body, ids, [...(WANTED[name] ?? []), ...wanted]);

/** A valid body with this value in each of these places, and with valid objects around them. */
export function bodyWith(
  operation: DescribedOperation,
  places: readonly (readonly (string | number)[])[],
  value: unknown,
  ids: Ids = {},
): unknown {
  const schemaAt = (place: readonly (string | number)[]) =>
    placesIn(operation.body ?? {}).find((candidate) => candidate.at.join() === place.join())?.schema;
  return places.reduce<unknown>(
    (body, at) => withValue(body, at, value, (place) => sampleOf(schemaAt(place) ?? {}, ids)),
    bodyOf(operation, ids),
  );
}

/** The headers that the operation requires. */
export const headersOf = ({ parameters }: DescribedOperation): Record<string, string> =>
  parameters.some(({ in: place, name, required }) => place === 'header' && name === 'Idempotency-Key' && required)
    ? { 'idempotency-key': newId() }
    : {};
