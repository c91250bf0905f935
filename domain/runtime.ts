/**
 * The runtime environments and their names (contract §1). Steps that move or simulate value are open only in the local
 * sandbox. "Remote" means either of the other two.
 */
export const RUNTIME_ENVIRONMENTS = ['local-sandbox', 'remote-sandbox', 'production'] as const;
export type RuntimeEnvironment = (typeof RUNTIME_ENVIRONMENTS)[number];

/** The `environment` field of JSON bodies. */
export const ENVIRONMENT_NAMES = ['local sandbox', 'remote sandbox', 'production'] as const;
export type EnvironmentName = (typeof ENVIRONMENT_NAMES)[number];

const NAME: Record<RuntimeEnvironment, EnvironmentName> = {
  'local-sandbox': 'local sandbox',
  'remote-sandbox': 'remote sandbox',
  production: 'production',
};

export const environmentName = (runtime: RuntimeEnvironment): EnvironmentName => NAME[runtime];

export const isRemote = (runtime: RuntimeEnvironment): boolean => runtime !== 'local-sandbox';

/** What `livemode` a provider event must have. Otherwise the event is stored, but not applied (contract §9). */
export const isLiveMode = (runtime: RuntimeEnvironment): boolean => runtime === 'production';

/** The environment part of a raw API key, `sk_<env>_…` (contract §3). */
export const API_KEY_ENVIRONMENT: Record<RuntimeEnvironment, 'local' | 'test' | 'live'> = {
  'local-sandbox': 'local',
  'remote-sandbox': 'test',
  production: 'live',
};
