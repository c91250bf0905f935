/** The generated files, and which of them are stale. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import stringify from 'json-stringify-pretty-compact';
import { SETTLEMENT_WAY, settlementPicture } from '../../api/pages/settlement-picture.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { charts } from './chart.ts';
import { clientTypes } from './client.ts';
import { configurationPage } from './configuration.ts';
import { corridorPage } from './corridor.ts';
import { dashboard } from './dashboard.ts';
import { withSections } from './document.ts';
import { errorPage } from './error.ts';
import { failurePage } from './failure.ts';
import { biomeLayers, layerTable } from './layer.ts';
import { methodTables } from './method-table.ts';
import { describeApi } from './openapi.ts';
import { planTable } from './plan.ts';
import { pythonClient } from './python/client.ts';
import type { OpenApi } from './python/document.ts';
import { shardKeyTable } from './shard-key.ts';
import { stateMachinePage } from './state-machine.ts';
import { temporalCostTable } from './temporal-cost.ts';

/** Contents by path below the repository. The same code gives the same contents. */
export type GeneratedFiles = Readonly<Record<string, string>>;

/** So a property of the document is usually one line, with its description and its example. */
const MAX_LINE_LENGTH = 400;
const json = (value: unknown): string => `${stringify(value, { maxLength: MAX_LINE_LENGTH })}\n`;

export async function generatedFiles(): Promise<GeneratedFiles> {
  const { document } = await describeApi();
  const written: OpenApi = JSON.parse(JSON.stringify(document));
  const read = (file: string) => readFile(path.join(repositoryRoot, file), 'utf8');
  return {
    'docs/openapi.json': json(document),
    'biome.layers.json': json(biomeLayers()),
    'docs/architecture.md': withSections(await read('docs/architecture.md'), { layers: layerTable() }),
    'docs/configuration.md': configurationPage(),
    'docs/errors.md': errorPage(),
    'docs/guides/corridors.md': corridorPage(),
    'docs/guides/failures.md': failurePage(),
    ...charts(await read('docs/performance.md')),
    'docs/images/settlement-way.svg': settlementPicture({ label: SETTLEMENT_WAY, isFile: true }),
    'docs/observability/dashboard.json': dashboard(),
    'docs/scaling.md': withSections(await read('docs/scaling.md'), {
      'temporal-cost': await temporalCostTable(),
      plan: planTable(),
      'shard-key': shardKeyTable(),
    }),
    'docs/state-machines.md': stateMachinePage(),
    'clients/typescript/generated/openapi.ts': await clientTypes(written),
    ...pythonClient(written),
    ...(await readmes(written, read)),
  };
}

async function readmes(document: OpenApi, read: (file: string) => Promise<string>): Promise<Record<string, string>> {
  const texts = (['python', 'typescript'] as const).map(async (language) => {
    const file = `clients/${language}/README.md`;
    return [file, withSections(await read(file), { methods: methodTables(document, language) })];
  });
  return Object.fromEntries(await Promise.all(texts));
}

/** The paths whose file below `root` is missing or differs from the generated one. */
export async function staleFiles(root: string, files: GeneratedFiles): Promise<string[]> {
  const stale = await Promise.all(
    Object.entries(files).map(async ([file, content]) => {
      const current = await readFile(path.join(root, file), 'utf8').catch(() => undefined);
      return current === content ? [] : [file];
    }),
  );
  return stale.flat();
}

/** Writes the stale files and returns their paths. The folders must exist. */
export async function writeFiles(root: string, files: GeneratedFiles): Promise<string[]> {
  const stale = await staleFiles(root, files);
  for (const file of stale) await writeFile(path.join(root, file), files[file] ?? '');
  return stale;
}
