/** What a process was started with: variables, files that hold their values, and names that are misspelt. */
import { readFileSync } from 'node:fs';
import { distance } from 'fastest-levenshtein';
import { Environment } from './environment.ts';

/** Read by the library for Temporal's own configuration. */
const TEMPORAL_NAMES = [
  'TEMPORAL_ADDRESS',
  'TEMPORAL_NAMESPACE',
  'TEMPORAL_API_KEY',
  'TEMPORAL_TLS_CLIENT_CERT_PATH',
  'TEMPORAL_TLS_CLIENT_CERT_DATA',
  'TEMPORAL_TLS_CLIENT_KEY_PATH',
  'TEMPORAL_TLS_CLIENT_KEY_DATA',
  'TEMPORAL_TLS_SERVER_CA_CERT_PATH',
  'TEMPORAL_TLS_SERVER_CA_CERT_DATA',
  'TEMPORAL_TLS_SERVER_NAME',
];
/** Every variable that the service knows; each also as `<NAME>_FILE`. */
export const VARIABLES: readonly string[] = [...Object.keys(Environment.shape), ...TEMPORAL_NAMES];
/** Temporal's configuration knows it, and its library for TypeScript ignores it. */
const IGNORED = 'TEMPORAL_TLS_DISABLE_HOST_VERIFICATION';
const FILE = '_FILE';
const KNOWN = new Set(VARIABLES.flatMap((name) => [name, `${name}${FILE}`]));

/**
 * A name with so few other characters than a known one is that name, misspelt. Shorter known ones resemble too much.
 */
const MISSPELT = { distanceMax: 2, knownLengthMin: 8 } as const;

/**
 * The variables that are set. Empty values count as unset: an environment file may have blank lines for unused
 * variables. `<NAME>_FILE` names a file that holds the value of `<NAME>`, as secrets are mounted; what was read appears
 * under `<NAME>`.
 */
export function readGiven(env: NodeJS.ProcessEnv): {
  readonly given: Record<string, string>;
  readonly faults: readonly string[];
} {
  const set = new Map(
    Object.entries(env).flatMap(([name, value]) => (value === undefined || value === '' ? [] : [[name, value]])),
  );
  const faults = misspelt([...set.keys()]);
  if (set.has(IGNORED)) faults.push(`${IGNORED} does nothing: set TEMPORAL_TLS_SERVER_NAME to the certificate's name`);
  for (const name of VARIABLES) {
    const file = set.get(name + FILE);
    if (file === undefined) continue;
    const value = set.has(name) ? undefined : contentOf(file);
    if (set.has(name)) faults.push(`${name} and ${name}${FILE} are both set`);
    else if (value === undefined) faults.push(`${name}${FILE} must name a file that can be read`);
    else {
      set.delete(name + FILE);
      if (value !== '') set.set(name, value);
    }
  }
  return { given: Object.fromEntries(set), faults };
}

/** Without the line's end, which editors and `echo` add. */
export function contentOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch {
    return undefined;
  }
}

/** A misspelt variable would be ignored without a word. */
function misspelt(names: readonly string[]): string[] {
  const unknown = names.filter((name) => !KNOWN.has(name));
  return unknown.flatMap((name) => {
    const meant = [...KNOWN].find(
      (known) => known.length >= MISSPELT.knownLengthMin && distance(name, known) <= MISSPELT.distanceMax,
    );
    return meant === undefined ? [] : [`${name} is unknown: ${meant} is meant`];
  });
}
