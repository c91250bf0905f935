/** A tenant (contract §3). Every object belongs to exactly one. */
import type { EnvironmentName } from './runtime.ts';

export type Organization = {
  readonly orgId: string;
  /** Each consumer is a tenant of its own (contract §12). */
  readonly kind: 'partner' | 'consumer';
  readonly name: string;
  readonly country: string;
  readonly contactEmail: string;
  readonly environment: EnvironmentName;
  readonly createdAt: Date;
};
