/** The types of each operation, read from the generated document: which input it takes, and what it answers. */
import type { paths } from './generated/openapi.ts';
import type { KeyOptions } from './intent.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The paths that have this method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: Lowercase<M> extends keyof paths[P] ? P : never;
}[keyof paths];

export type OperationOf<M extends Method, P extends PathOf<M>> = paths[P][Lowercase<M> & keyof paths[P]];

type SuccessStatus = 200 | 201 | 202 | 204;
type JsonOf<R> = R extends { content: { 'application/json': infer Body } } ? Body : undefined;
type SuccessOf<O> = O extends { responses: infer R } ? JsonOf<R[keyof R & SuccessStatus]> : never;

/** The JSON of the successful answer; undefined for 204. */
export type AnswerOf<M extends Method, P extends PathOf<M>> = SuccessOf<OperationOf<M, P>>;

type PathInput<O> = O extends { parameters: { path: infer V } } ? { readonly path: V } : object;
type QueryInput<O> = O extends { parameters: { query: infer V } }
  ? { readonly query: V }
  : O extends { parameters: { query?: infer V } }
    ? { readonly query?: V | undefined }
    : object;
type BodyInput<O> = O extends { requestBody: { content: { 'application/json': infer B } } }
  ? { readonly body: B }
  : O extends { requestBody?: { content: { 'application/json': infer B } } }
    ? { readonly body?: B | undefined }
    : object;

/** An operation without a key is carried out again when it is sent again. */
type KeyInput<O> = O extends { parameters: { header?: infer H } }
  ? 'Idempotency-Key' extends keyof NonNullable<H>
    ? KeyOptions
    : NoKey
  : NoKey;
type NoKey = { readonly idempotencyKey?: undefined };

/** What this operation takes in its path, its query and its body, and whether it takes a key. */
export type InputOf<M extends Method, P extends PathOf<M>> = PathInput<OperationOf<M, P>> &
  QueryInput<OperationOf<M, P>> &
  BodyInput<OperationOf<M, P>> &
  KeyInput<OperationOf<M, P>>;

export type BodyOf<M extends Method, P extends PathOf<M>> =
  InputOf<M, P> extends { readonly body?: infer B } ? Exclude<B, undefined> : never;
export type QueryOf<P extends PathOf<'GET'>> =
  InputOf<'GET', P> extends { readonly query?: infer Q } ? Exclude<Q, undefined> & object : never;
export type ItemOf<P extends PathOf<'GET'>> = AnswerOf<'GET', P> extends readonly (infer Item)[] ? Item : never;
