/**
 * Lists of the consumer API. They take neither limit nor offset: a list shows the newest objects, and a cursor leads to
 * the older ones.
 */
import { CONSUMER_LIST_MAX } from '../../domain/consumer.ts';
import type { Cursor, Page } from '../../domain/page.ts';

/** What a list shows: the newest objects, or those after the cursor. */
export const consumerPage = ({ after }: { readonly after?: Cursor | undefined }): Page => ({
  limit: CONSUMER_LIST_MAX,
  offset: 0,
  after,
});
