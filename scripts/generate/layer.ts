/**
 * The layers: what each folder is, and what it may import. From this table come the one of docs/architecture.md and the
 * rules of Biome (`biome.layers.json`); test/contract/dependency.test.ts compares it with the imports of all files.
 */
import { table } from './document.ts';

export type Layer = {
  readonly what: string;
  /** `(types)`: nothing but types. */
  readonly mayImport: readonly string[];
  /** Folders and files of their own kind in it. */
  readonly parts?: Readonly<Record<string, string>>;
  /** Packages that belong to another layer. */
  readonly noPackages?: readonly string[];
};

const CONTRACT = 'workflows/contract.ts';
const TABLES = ['**/db/schema/**', 'drizzle-orm', 'drizzle-orm/*'];

/** A folder, or a file at the root; the lowest first. */
export const LAYERS: Readonly<Record<string, Layer>> = {
  domain: {
    what: 'the rules: no packages, no I/O, no clock',
    mayImport: [],
    parts: {
      'resource/': 'each noun as the API and the events show it',
      'sandbox/': "the sandbox's scenarios and simulated events",
      'settlement/': "a settlement's states and what decides",
    },
  },
  db: {
    what: "`schema/`, `migrations/`, the connection, sealed columns, the privileges of the service's role",
    mayImport: ['domain'],
    parts: {
      'queries/': 'single statements, one file per noun; `operator/` has those of the operators',
      'commands/': 'one transaction over several tables',
    },
    noPackages: ['@temporalio/*', 'fastify', 'zod'],
  },
  workflows: {
    what: 'what runs next and how long it waits; deterministic; of packages only `@temporalio/workflow`',
    mayImport: ['domain', 'activities (types)'],
    parts: { 'contract.ts': 'queues, signals, search attributes: what others may know' },
    noPackages: [
      ...['node:*', '@temporalio/client', '@temporalio/worker', '@temporalio/activity'],
      ...['zod', 'pg', 'drizzle-orm', 'drizzle-orm/*', 'pino', 'fastify'],
    ],
  },
  activities: {
    what: 'every effect outside a workflow; each may run twice',
    mayImport: ['db', 'domain', CONTRACT],
    noPackages: ['@temporalio/client', '@temporalio/worker', '@temporalio/workflow', 'fastify'],
  },
  config: { what: 'the only reader of the environment', mayImport: ['domain'] },
  process: {
    what: 'what API and worker share: Temporal, dispatcher, logs, metrics, traces',
    mayImport: ['db', 'domain', 'config', CONTRACT],
    noPackages: [...TABLES, 'fastify'],
  },
  api: {
    what: '`routes/`, `schemas/`, `plugins/`, `pages/`, and `openapi/`: the document',
    mayImport: ['process', 'db', 'domain', 'config', CONTRACT],
    parts: { 'http/': 'the wire: headers, bodies, pages of lists, errors' },
    noPackages: [...TABLES, 'pg', '@temporalio/*'],
  },
  worker: {
    what: 'runs workflows and activities',
    mayImport: ['process', 'activities', 'workflows', CONTRACT, 'db', 'domain', 'config'],
    noPackages: [...TABLES, 'fastify'],
  },
  ops: {
    what: "the operators' commands; part of the image",
    mayImport: ['process', 'db', 'domain', 'config', CONTRACT],
    parts: { 'command-line/': 'what every command of ours is made of' },
    noPackages: TABLES,
  },
  scripts: {
    what: "the local stack, the demo, the sandbox's commands, generators",
    mayImport: [
      ...['api', 'worker', 'ops', 'process', 'activities', 'workflows', CONTRACT],
      ...['db', 'domain', 'config', 'clients'],
    ],
  },
  clients: {
    what: 'clients for partners, source only: types from the OpenAPI document, the rest by hand',
    mayImport: [],
  },
  examples: {
    what: 'what partners copy: the same stories in each language; the tests run them',
    mayImport: ['clients'],
  },
  test: {
    what: 'one folder per layer; `contract/`, `e2e/`, `attack/`',
    mayImport: ['everything'],
    parts: {
      commands: '`bench/`, `drill/`, `explore/`, `fuzz/`, `torture/`, `rehearsal/`, `newcomer/`',
    },
  },
};

/** The table of docs/architecture.md. */
export function layerTable(): string {
  const rows = Object.entries(LAYERS).flatMap(([name, { what, mayImport, parts = {} }]) => [
    [code(isFile(name) ? name : `${name}/`), what, mayImport.map(shown).join(', ') || 'itself'],
    ...Object.entries(parts).map(([part, is]) => [`· ${part === 'commands' ? part : code(part)}`, is, '']),
  ]);
  return table(['folder', 'what it is', 'may import'], rows);
}

const code = (text: string): string => `\`${text}\``;
const isFile = (name: string): boolean => name.endsWith('.ts');
const shown = (name: string): string => {
  const [unit = '', only] = name.split(' ');
  return unit === 'everything' ? unit : `${code(unit)}${only === undefined ? '' : ` ${only}`}`;
};

/** Biome's part of the table. `biome.json` extends it. Domain and clients have stricter rules, by hand. */
export function biomeLayers(): object {
  const overrides = Object.entries(LAYERS)
    .filter(([name, { mayImport }]) => !isFile(name) && mayImport.length > 0 && !['scripts', 'test'].includes(name))
    .map(([name, layer]) => ({
      includes: [`${name}/**`],
      linter: {
        rules: {
          style: {
            noRestrictedImports: {
              level: 'error',
              options: {
                patterns: [
                  { group: forbidden(name, layer), message: `${name} may import only ${layer.mayImport.join(', ')}.` },
                ],
              },
            },
          },
        },
      },
    }));
  return { overrides };
}

function forbidden(name: string, { mayImport, noPackages = [] }: Layer): string[] {
  const others = Object.keys(LAYERS)
    .filter((other) => other !== name && !mayImport.some((allowed) => allowed.split(' ')[0] === other))
    .map((other) => (isFile(other) ? `**/${other}` : `**/${other}/**`));
  const exceptions = mayImport.includes(CONTRACT) && !mayImport.includes('workflows') ? [`!**/${CONTRACT}`] : [];
  // A package may have a folder with the name of one of ours.
  return [...others, '!@temporalio/**', ...exceptions, ...noPackages];
}
