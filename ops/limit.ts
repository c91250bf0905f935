/** `org tier` and `limit set`: how much an organization may request and hold. */
import { changeAllowance } from '../db/commands/organization.ts';
import { DomainError, stateConflict } from '../domain/error.ts';
import {
  type Allowance,
  LIMIT_NAMES,
  LIMITS_MAX,
  type LimitName,
  limitsOf,
  type OwnLimits,
  TIERS,
} from '../domain/quota.ts';
import { AUDIT_PARAMETERS, changeCommand, type OpsCommand, type OpsDeps } from './command.ts';
import { oneOf, type Reader, required, text } from './command-line/parameter.ts';
import { EXIT, group } from './command-line/program.ts';

const OF_TIER = 'default';
const orgId = required('<org-id>', 'the organization', text);

/** A number, or the word for what the tier gives. */
const valueReader: Reader<number | undefined> = {
  read: (given) => {
    if (given === OF_TIER) return { value: undefined };
    const value = Number(given.trim() || Number.NaN);
    return Number.isInteger(value) && value >= 0
      ? { value }
      : { fault: `must be a whole number, or ${OF_TIER} for what the tier gives.` };
  },
};

/** The lines of what changes, and the data of all limits. */
function show(deps: OpsDeps, id: string, before: Allowance, after: Allowance): void {
  const perMinute = deps.rateLimitPerMinute;
  const [had, has] = [limitsOf(before, perMinute), limitsOf(after, perMinute)];
  for (const name of LIMIT_NAMES) if (had[name] !== has[name]) deps.print(`  ${name}: ${had[name]} → ${has[name]}`);
  deps.printData({ organization: id, tier: after.tier, own: after.limits, limits: has });
}

const unchanged = (what: string): DomainError => stateConflict(what, `It has ${what} already.`);

export const tierCommand: OpsCommand = changeCommand({
  name: 'tier',
  description: 'Gives an organization the limits of a tier. Limits of its own stay.',
  takes: { orgId, tier: required('<tier>', 'how much it may do', oneOf(TIERS)), ...AUDIT_PARAMETERS },
  run: async (deps: OpsDeps, { orgId: id, tier, ...act }) => {
    const before = await changeAllowance(deps, id, act, (current) => {
      if (current.tier === tier) throw unchanged(`the tier ${tier}`);
      const what = `tier ${current.tier} to ${tier}`;
      return { allowance: { ...current, tier }, action: 'organization_tier', what };
    });
    deps.print(`${id} has the tier ${tier}, from its next request on.`);
    show(deps, id, before, { ...before, tier });
    deps.print(`The way back: npm run ops -- org tier ${id} ${before.tier}`);
    return EXIT.done;
  },
});

export const limitCommands: OpsCommand = group('limit', "Single limits of an organization, instead of its tier's.", [
  changeCommand({
    name: 'set',
    description: 'Gives an organization a limit of its own. What it holds beyond the limit stays.',
    takes: {
      orgId,
      name: required('<name>', 'which limit', oneOf(LIMIT_NAMES)),
      value: required('<value>', `the limit; ${OF_TIER}: what the tier gives`, valueReader),
      ...AUDIT_PARAMETERS,
    },
    run: async (deps: OpsDeps, { orgId: id, name, value, ...act }) => {
      requireLimit(name, value);
      const before = await changeAllowance(deps, id, act, (current) => {
        if (current.limits[name] === value) throw unchanged(wordOf(name, value));
        const what = `${wordOf(name, current.limits[name])} to ${value ?? OF_TIER}`;
        return { allowance: withLimit(current, name, value), action: 'organization_limit', what };
      });
      deps.print(`${id} has ${wordOf(name, value)}, from its next request on.`);
      show(deps, id, before, withLimit(before, name, value));
      deps.print(`The way back: npm run ops -- limit set ${id} ${name} ${before.limits[name] ?? OF_TIER}`);
      return EXIT.done;
    },
  }),
]);

const wordOf = (name: LimitName, value: number | undefined): string => `${name} ${value ?? OF_TIER}`;

function withLimit({ tier, limits }: Allowance, name: LimitName, value: number | undefined): Allowance {
  const { [name]: _replaced, ...others } = limits;
  const own: OwnLimits = value === undefined ? others : { ...others, [name]: value };
  return { tier, limits: own };
}

/** @throws DomainError `state_conflict` for a number that no organization may have */
function requireLimit(name: LimitName, value: number | undefined): void {
  const least = name === 'requests_per_minute' ? 1 : 0;
  const most = LIMITS_MAX[name];
  if (value !== undefined && (value < least || value > most))
    throw new DomainError('state_conflict', {}, `${name} is a number from ${least} to ${most}.`);
}
