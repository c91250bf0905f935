/** How Temporal is reached: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS_*. */
import { type ClientConnectConfig, loadClientConnectConfig } from '@temporalio/envconfig';

export type TemporalConfig = {
  /** Undefined when it could not be read. */
  readonly connect: ClientConnectConfig | undefined;
  readonly faults: readonly string[];
};

/** Profiles on disk are never read. */
export function temporalConfig(given: Record<string, string>): TemporalConfig {
  const faults = apiKeyFaults(given);
  try {
    return { connect: loadClientConnectConfig({ disableFile: true, overrideEnvVars: given }), faults };
  } catch {
    // The error's message can contain a value.
    return {
      connect: undefined,
      faults: [...faults, 'TEMPORAL_TLS_* is invalid: a file cannot be read, or one setting is given twice'],
    };
  }
}

/** The library for gRPC quotes a header that it cannot send: its sentence would bring the key into the log. */
const apiKeyFaults = ({ TEMPORAL_API_KEY: key }: Readonly<Record<string, string | undefined>>): string[] =>
  key === undefined || /^[!-~]+$/.test(key) ? [] : ['TEMPORAL_API_KEY must be one word of ASCII characters'];
