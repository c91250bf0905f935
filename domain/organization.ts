/** A tenant (contract §3). Every object belongs to exactly one. */
import type { Allowance } from './quota.ts';
import type { EnvironmentName } from './runtime.ts';

export const ORGANIZATION_STATUSES = ['active', 'suspended'] as const;

export type Organization = Allowance & {
  readonly orgId: string;
  /** Each consumer is a tenant of its own (contract §12). */
  readonly kind: 'partner' | 'consumer';
  readonly name: string;
  readonly country: string;
  readonly contactEmail: string;
  readonly environment: EnvironmentName;
  readonly createdAt: Date;
  /** Since when an operator has suspended it; null if nobody has. */
  readonly suspendedAt: Date | null;
};
