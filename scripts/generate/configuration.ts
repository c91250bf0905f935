/** The page of configuration variables, from the schema that reads them. */
import { z } from 'zod';
import { Environment } from '../../config/environment.ts';
import { SANDBOX_SECRETS } from '../../config/sandbox-secret.ts';
import { GENERATED, page, table } from './document.ts';

/** Variables that packages read by themselves. */
const OF_PACKAGES = {
  TEMPORAL_ADDRESS: 'Temporal, as `<host>:<port>`. Without it: `localhost:7233`.',
  TEMPORAL_NAMESPACE: 'The namespace. Without it: `default`.',
  TEMPORAL_API_KEY: 'A credential of Temporal Cloud.',
  'TEMPORAL_TLS_*': 'Certificates for Temporal, as files or texts: the names of its own command line.',
  OTEL_TRACES_SAMPLER: 'Which requests are traced, with `OTEL_TRACES_SAMPLER_ARG`.',
} as const;

export function configurationPage(): string {
  const rows = Object.entries(Environment.shape).map(([name, schema]) => {
    if (schema.description === undefined) throw new Error(`${name} has no description in config/environment.ts`);
    return [code(name), defaultOf(name, schema), schema.description];
  });
  return page(
    GENERATED,
    '# Configuration',
    'All variables of the environment. `config/` reads them once, lists all faults at once, and prints no value. An empty value counts as none. `<NAME>_FILE` names a file that holds the value. A list is separated by commas; of keys, the first is the active one.',
    table(['Variable', 'Default', 'Meaning'], rows),
    '## Read by packages',
    table(
      ['Variable', 'Meaning'],
      Object.entries(OF_PACKAGES).map(([name, meaning]) => [code(name), meaning]),
    ),
  );
}

function defaultOf(name: string, schema: z.ZodType): string {
  if (SANDBOX_SECRETS.some((secret) => secret === name)) return 'required; the local sandbox generates it';
  if (schema instanceof z.ZodDefault)
    return String(schema.def.defaultValue) === '' ? '–' : code(String(schema.def.defaultValue));
  return schema instanceof z.ZodOptional ? '–' : 'required';
}

const code = (text: string): string => `\`${text}\``;
