/** A request for every operation that is valid in form: what a test changes in it is the one thing that is wrong. */
import { newId } from '../../db/id.ts';
import { type DescribedOperation, placesIn, sampleOf, withValue } from './document.ts';

/** Optional fields without which a body is not valid: rules across fields, which no schema tells. */
const WANTED: Readonly<Record<string, readonly string[]>> = {
  'POST /v2/settle': ['card_token'],
  'POST /v1/recipients': ['bank_details'],
  'POST /consumer/recipients': ['bank_details'],
  'POST /consumer/auth/request-otp': ['email'],
  'POST /consumer/transfers': ['corridor', 'amount', 'payment_method', 'payout_rail', 'card_token'],
};

/** Ids of path parameters that are valid in form. */
const unknownId = (name: string): string =>
  name === 'cert_id' ? `CERT-${newId().replaceAll('-', '').toUpperCase()}` : newId();

export type Ids = Readonly<Record<string, string>>;

/** Where the operation is called, with these ids in its path and in its query; every other one names nothing. */
export function urlOf({ path, parameters }: DescribedOperation, ids: Ids = {}): string {
  const address = path.replace(/\{([a-z_]+)\}/g, (_, name: string) => encodeURIComponent(ids[name] ?? unknownId(name)));
  const query = new URLSearchParams();
  for (const { in: place, name, required } of parameters)
    if (place === 'query' && required) query.set(name, ids[name] ?? unknownId(name));
  return query.size === 0 ? address : `${address}?${query}`;
}

/** A body that the operation's schema takes, with these values for fields of their names; optional fields as `wanted`. */
export const bodyOf = ({ name, body }: DescribedOperation, ids: Ids = {}, wanted: readonly string[] = []): unknown =>
  body && sampleOf(body, ids, [...(WANTED[name] ?? []), ...wanted]);

/** The body with one value changed; what is around it is made valid. */
export function bodyWith(
  operation: DescribedOperation,
  at: readonly (string | number)[],
  value: unknown,
  ids: Ids = {},
): unknown {
  const schemaAt = (place: readonly (string | number)[]) =>
    placesIn(operation.body ?? {}).find((candidate) => candidate.at.join() === place.join())?.schema;
  return withValue(bodyOf(operation, ids), at, value, (place) => sampleOf(schemaAt(place) ?? {}, ids));
}

/** What the operation needs beside its body: the headers that it requires. */
export const headersOf = ({ parameters }: DescribedOperation): Record<string, string> =>
  parameters.some(({ in: place, name, required }) => place === 'header' && name === 'Idempotency-Key' && required)
    ? { 'idempotency-key': newId() }
    : {};
