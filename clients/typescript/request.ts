/** One call of the API, typed by the generated document. */
import { type Intent, isIntent, type KeyOptions, prepareIntent } from './intent.ts';
import { createList, type List } from './list.ts';
import type { AnswerOf, BodyOf, InputOf, ItemOf, Method, PathOf, QueryOf } from './operation.ts';
import { type Answer, type CallOptions, filledPath, type Send, withJson } from './transport.ts';

export type RequestOptions = CallOptions & {
  readonly headers?: Readonly<Record<string, string>>;
  /** For commands that the contract lets one repeat without a key, such as a cancellation. */
  readonly isRepeatable?: boolean;
  readonly attemptTimeoutMs?: number;
  readonly deadlineMs?: number | undefined;
};

/**
 * Any operation of the document. Only a GET and a request with an `idempotencyKey` are repeated.
 *
 * @throws TypeError for a key of anything but a POST: no other operation takes one
 */
export type Request = <M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  input: InputOf<M, P> & RequestOptions,
) => Promise<Answer<AnswerOf<M, P>>>;

/** What every input may have; its exact type is checked where `request` is called. */
type AnyInput = RequestOptions &
  KeyOptions & { readonly path?: object; readonly query?: object; readonly body?: unknown };

export const createRequest = (send: Send): Request => {
  const request = async (method: Method, template: string, input: AnyInput): Promise<Answer<unknown>> => {
    const { path: values, body, idempotencyKey, isRepeatable, ...options } = input;
    const path = filledPath(template, values);
    if (idempotencyKey !== undefined && method !== 'POST') throw new TypeError('Only a POST takes an idempotencyKey.');
    const intent = idempotencyKey === undefined ? undefined : prepareIntent(path, body, { idempotencyKey });
    const text = intent?.body ?? (body === undefined ? undefined : JSON.stringify(body));
    return withJson(
      await send({
        method,
        path,
        body: text,
        intent,
        isRepeatable: isRepeatable ?? (method === 'GET' || intent !== undefined),
        ...options,
      }),
    );
  };
  return request as Request;
};

/** Sends an intent. The same intent may be sent any number of times: the answer is that of the first. */
export const sendIntent = async <T>(send: Send, intent: Intent<T>, options: CallOptions = {}): Promise<Answer<T>> =>
  withJson(
    await send({ method: 'POST', path: intent.path, body: intent.body, intent, isRepeatable: true, ...options }),
  );

/** The operations that create something under an idempotency key. */
export type CreationPath = PathOf<'POST'>;

export type Creation<P extends CreationPath> = {
  /** The intent, with a new key, to store before it is sent. */
  prepare(fields: BodyOf<'POST', P>, options?: KeyOptions): Intent<AnswerOf<'POST', P>>;
  /**
   * Creates once, however often it has to be sent.
   *
   * @param given the fields, for which a key is made, or an intent that was prepared
   * @throws SettlementError whose `intent` can be sent again
   */
  create(
    given: BodyOf<'POST', P> | Intent<AnswerOf<'POST', P>>,
    options?: CallOptions & KeyOptions,
  ): Promise<AnswerOf<'POST', P>>;
};

/** @throws TypeError in `create`, for the intent of another operation */
export function creationAt<P extends CreationPath>(send: Send, path: P): Creation<P> {
  const prepare: Creation<P>['prepare'] = (fields, options) => prepareIntent(path, fields, options);
  return {
    prepare,
    create: async (given, { idempotencyKey, ...options } = {}) => {
      const isPrepared = isIntent(given);
      if (isPrepared && given.path !== path)
        throw new TypeError(`This intent is one of ${given.path}, not of ${path}.`);
      const intent: Intent<AnswerOf<'POST', P>> = isPrepared ? given : prepareIntent(path, given, { idempotencyKey });
      return (await sendIntent(send, intent, options)).data;
    },
  };
}

/** Creates below another object, with a key of its own. */
export const createBelow = async <P extends CreationPath>(
  send: Send,
  path: P,
  { values, fields }: { readonly values: object; readonly fields?: unknown },
  { idempotencyKey, ...options }: CallOptions & KeyOptions = {},
): Promise<AnswerOf<'POST', P>> => {
  const intent = prepareIntent<AnswerOf<'POST', P>>(filledPath(path, values), fields, { idempotencyKey });
  return (await sendIntent(send, intent, options)).data;
};

/** A list of the document over all its pages. */
export const listAt = <P extends PathOf<'GET'>>(
  send: Send,
  path: P,
  query?: QueryOf<P>,
  { values, ...options }: CallOptions & { readonly values?: object } = {},
): List<ItemOf<P>> => createList<ItemOf<P>>(send, path, { ...(values && { values }), query, ...options });
