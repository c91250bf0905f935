/** Consumers' quotes (contract §12). */
import { and, eq } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import type { Quote } from '../../domain/quote.ts';
import type { Queryable } from '../client.ts';
import { quotes } from '../schema/quote.ts';

export async function insertQuote(db: Queryable, quote: Quote): Promise<void> {
  await db.insert(quotes).values(quote);
}

/** @throws DomainError `not_found`, for another consumer's quote as well */
export async function getQuote(db: Queryable, orgId: string, quoteId: string): Promise<Quote> {
  const [row] = await db
    .select()
    .from(quotes)
    .where(and(eq(quotes.orgId, orgId), eq(quotes.quoteId, quoteId)))
    .limit(1);
  if (!row) throw new DomainError('not_found', { field: 'quote_id' });
  return row;
}
