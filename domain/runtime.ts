/**
 * The runtime environments and what each is called (contract §1). Everything that moves or simulates
 * value is open in the local sandbox alone; "remote" means either of the other two.
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

/** A provider event's `livemode` must be this, else the event is stored and applied to nothing (contract §9). */
export const isLiveMode = (runtime: RuntimeEnvironment): boolean => runtime === 'production';

/** The environment part of a raw API key, `sk_<env>_…` (contract §3). */
export const API_KEY_ENVIRONMENT: Record<RuntimeEnvironment, 'local' | 'test' | 'live'> = {
  'local-sandbox': 'local',
  'remote-sandbox': 'test',
  production: 'live',
};
