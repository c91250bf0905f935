/** API-key scopes and what each covers (contract §3). Every scope covers `read`; `full` covers all. */
export const SCOPES = ['read', 'recipients', 'compliance', 'settle', 'full'] as const;
export type Scope = (typeof SCOPES)[number];

/** Whether a key of scope `held` may use a route that requires `required`, or create a key of that scope. */
export function scopeCovers(held: Scope, required: Scope): boolean {
  return held === required || required === 'read' || held === 'full';
}
