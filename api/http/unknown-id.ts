/** Ids in bodies that name nothing of the caller's (contract §2). */
import { DomainError } from '../../domain/error.ts';

/** For a command that takes an id from this field of the body: its `not_found` names the field. */
export const naming =
  (field: string) =>
  (error: unknown): never => {
    throw error instanceof DomainError && error.code === 'not_found' ? new DomainError('not_found', { field }) : error;
  };
