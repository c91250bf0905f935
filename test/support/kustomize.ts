/**
 * Builds a folder of deploy/kubernetes as `kustomize build` does, with what these folders use of it: resources, patches
 * of JSON, images, a namespace, a suffix and labels. Another field is an error.
 */
import path from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { readSource } from './source.ts';

const Container = z.looseObject({
  name: z.string(),
  image: z.string(),
  command: z.array(z.string()),
  env: z.array(z.object({ name: z.string(), value: z.string() })).optional(),
  envFrom: z.array(z.object({ configMapRef: z.object({ name: z.string() }) })).optional(),
});
const PodSpec = z.looseObject({ containers: z.tuple([Container]) });
/** What of a resource the tests read; everything else is kept. */
export const Resource = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), labels: z.record(z.string(), z.string()).optional() }),
  data: z.record(z.string(), z.string()).optional(),
  spec: z
    .looseObject({
      template: z
        .looseObject({ metadata: z.looseObject({ labels: z.record(z.string(), z.string()) }), spec: PodSpec })
        .optional(),
    })
    .optional(),
});
export type Resource = z.output<typeof Resource>;

const Kustomization = z.strictObject({
  apiVersion: z.literal('kustomize.config.k8s.io/v1beta1'),
  kind: z.literal('Kustomization'),
  resources: z.array(z.string()),
  namespace: z.string().optional(),
  nameSuffix: z.string().default(''),
  labels: z
    .array(z.strictObject({ includeSelectors: z.literal(true), pairs: z.record(z.string(), z.string()) }))
    .default([]),
  images: z.array(z.strictObject({ name: z.string(), newName: z.string(), newTag: z.string() })).default([]),
  patches: z
    .array(
      z.strictObject({ target: z.strictObject({ kind: z.string(), name: z.string().optional() }), patch: z.string() }),
    )
    .default([]),
});

const Operations = z.array(z.strictObject({ op: z.enum(['add', 'replace']), path: z.string(), value: z.unknown() }));

/** @param folder from the root of the repository */
export function buildKustomization(folder: string): Resource[] {
  const { resources, namespace, nameSuffix, labels, images, patches } = Kustomization.parse(
    parse(readSource(`${folder}/kustomization.yaml`)),
  );
  const found: unknown[] = resources.flatMap((name) => {
    const file = path.posix.join(folder, name);
    if (!name.endsWith('.yaml')) return buildKustomization(file);
    return parseAllDocuments(readSource(file), { merge: true }).map((document) => document.toJS());
  });
  return found.map((raw) => {
    const target = Resource.parse(raw);
    for (const { target: wanted, patch } of patches) {
      if (wanted.kind !== target.kind || (wanted.name ?? target.metadata.name) !== target.metadata.name) continue;
      for (const { op, path: place, value } of Operations.parse(parse(patch))) apply(raw, op, place, value);
    }
    const built = Resource.parse(raw);
    for (const { pairs } of labels) addLabels(built, pairs);
    const container = built.spec?.template?.spec.containers[0];
    const image = images.find(({ name }) => name === container?.image);
    if (container && image) container.image = `${image.newName}:${image.newTag}`;
    built.metadata.name += nameSuffix;
    if (namespace !== undefined) built.metadata['namespace'] = namespace;
    return built;
  });
}

function apply(target: unknown, op: 'add' | 'replace', place: string, value: unknown): void {
  const keys = place.split('/').slice(1);
  const last = keys.pop() ?? '';
  const parent = keys.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), target);
  if (!isObject(parent)) throw new Error(`there is nothing at ${place}`);
  if (op === 'replace' && !(last in parent)) throw new Error(`there is nothing to replace at ${place}`);
  if (Array.isArray(parent) && last === '-') parent.push(value);
  else parent[last] = value;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

/** To the resource, its pods, and all selectors of them. */
function addLabels(resource: Resource, pairs: Readonly<Record<string, string>>): void {
  resource.metadata.labels = { ...resource.metadata.labels, ...pairs };
  const template = resource.spec?.template;
  if (template) Object.assign(template.metadata.labels, pairs);
  const select = (at: unknown): void => {
    if (!isObject(at)) return;
    for (const [key, value] of Object.entries(at)) {
      if (key === 'matchLabels' && isObject(value)) Object.assign(value, pairs);
      else select(value);
    }
  };
  select(resource.spec);
}

/** The environment of a pod's container. */
export function environmentOf(resources: readonly Resource[], pod: Resource): Record<string, string> {
  const container = pod.spec?.template?.spec.containers[0];
  if (container === undefined) throw new Error(`${pod.metadata.name} has no container`);
  const maps = (container.envFrom ?? []).map(({ configMapRef: { name } }) => {
    const map = resources.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === name);
    if (map?.data === undefined) throw new Error(`${pod.metadata.name} reads ${name}, which is no ConfigMap`);
    return map.data;
  });
  return Object.assign({}, ...maps, Object.fromEntries((container.env ?? []).map(({ name, value }) => [name, value])));
}
