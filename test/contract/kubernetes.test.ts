/** deploy/kubernetes: what the schemas of Kubernetes say, and what the manifests promise. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { execa } from 'execa';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { Environment } from '../../config/environment.ts';
import { VARIABLES } from '../../config/given.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { findOnPath } from '../../scripts/stack/program-path.ts';
import { DELIVERY_TASK_QUEUE, SEARCH_ATTRIBUTES, TASK_QUEUE } from '../../workflows/contract.ts';
import { buildKustomization, environmentOf, type Resource } from '../support/kustomize.ts';
import { acquirePython, type PythonProgram } from '../support/python-program.ts';
import { readSource } from '../support/source.ts';

const EXAMPLE = 'deploy/kubernetes/example';
const RESOURCES = buildKustomization(EXAMPLE);
const pods = RESOURCES.filter(({ spec }) => spec?.template !== undefined);
const named = (kind: string): readonly Resource[] => RESOURCES.filter((resource) => resource.kind === kind);

/** The oldest that knows what the manifests use, and the newest. */
const VERSIONS = ['1.30', '1.37'];
const VALIDATE = `
import json, sys
from kubernetes_validate import ValidationError, validate
for resource in json.load(sys.stdin):
    for version in sys.argv[1:]:
        try: validate(resource, version, strict=True)
        except ValidationError as error: print(resource['kind'], resource['metadata']['name'], list(error.path), error.message)
`;

test('every resource is valid in Kubernetes 1.30 and 1.37', async ({ skip }) => {
  const purpose = 'Validating the manifests';
  const python = await acquirePython(purpose, () => undefined).catch((error: unknown): PythonProgram => {
    if (error instanceof Error && error.message.startsWith(purpose)) skip(error.message);
    throw error;
  });
  // KEDA's kinds are its own.
  const known = RESOURCES.filter(({ apiVersion }) => !apiVersion.startsWith('keda.sh/'));
  expect(known.length).toBeGreaterThan(15);
  const { command, env } = python;
  const broken = { ...known[0], data: { PORT: 3000 } };
  const validate = (resources: readonly unknown[]) =>
    execa(command, ['-c', VALIDATE, ...VERSIONS], { env, input: JSON.stringify(resources) });
  expect((await validate(known)).stdout).toBe('');
  expect((await validate([broken])).stdout).toContain("3000 is not of type 'string'");
});

test('the API and the workers reach the identity provider: the API asks it for tokens, a worker for applicants', () => {
  const reach = named('NetworkPolicy').filter(({ spec }) => JSON.stringify(spec).includes('"cidr":"0.0.0.0/0"'));
  expect(reach.map(({ spec }) => JSON.stringify(spec).match(/"app":"(\w+)"/)?.[1]).toSorted()).toEqual([
    'api',
    'worker',
  ]);
});

test('the example is built as kubectl builds it, where there is one', async ({ skip }) => {
  const kubectl = findOnPath('kubectl', process.env);
  if (kubectl === undefined) return skip('There is no kubectl on the PATH.');
  const { stdout } = await execa(kubectl, ['kustomize', path.join(repositoryRoot, EXAMPLE)]);
  const byName = (resources: readonly Resource[]) =>
    Object.fromEntries(resources.map((resource) => [`${resource.kind} ${resource.metadata.name}`, resource]));
  const built = parseAllDocuments(stdout).map((document) => document.toJS() as Resource);
  expect(byName(RESOURCES)).toEqual(byName(built));
});

describe.each(pods.map((pod) => [pod.metadata.name, pod] as const))('a pod of %s', (_name, pod) => {
  const { spec, metadata } = pod.spec?.template ?? expect.unreachable();
  const [container] = spec.containers;

  test('runs a program of the image as a numbered user, without rights, on a root that it cannot write', () => {
    expect([spec['automountServiceAccountToken'], container.command[0]]).toEqual([false, 'node']);
    expect(existsSync(path.join(repositoryRoot, container.command[1] ?? ''))).toBe(true);
    const user = 1000;
    expect(readSource('Dockerfile')).toContain(`\nUSER ${user}:${user}\n`);
    expect(spec['securityContext']).toMatchObject({ runAsNonRoot: true, runAsUser: user });
    expect(container['securityContext']).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(container['resources']).toMatchObject({
      requests: { cpu: expect.anything() },
      limits: { memory: expect.anything() },
    });
  });

  test('reads every secret from a file of a secret that is mounted, and has none in its environment', () => {
    const mounts = container['volumeMounts'] as { name: string; mountPath: string }[];
    const volumes = spec['volumes'] as { name: string; secret?: unknown }[];
    const secrets = mounts.filter(({ name }) => volumes.find((volume) => volume.name === name)?.secret);
    const files = Object.entries(environmentOf(RESOURCES, pod)).filter(([name]) => name.endsWith('_FILE'));
    for (const [name, file] of files)
      expect(secrets.map(({ mountPath }) => `${mountPath}/${name.slice(0, -'_FILE'.length)}`)).toContain(file);
    const plain = Object.keys(environmentOf(RESOURCES, pod)).filter((name) =>
      /SECRET|KEY|PEPPER|DATABASE|TOKEN/.test(name),
    );
    expect(plain.filter((name) => !name.endsWith('_FILE'))).toEqual([]);
  });

  test('is chosen by what names it, and by no other', () => {
    const selector = pod.spec?.['selector'] as { matchLabels: Record<string, string> } | undefined;
    if (pod.kind !== 'Job') expect(metadata.labels).toMatchObject(selector?.matchLabels ?? {});
    const others = pods.filter((other) => other !== pod).map((other) => other.spec?.template?.metadata.labels);
    for (const labels of others)
      expect(labels).not.toMatchObject(selector?.matchLabels ?? { app: metadata.labels['app'] });
  });
});

test.for(['api', 'worker'])('%s has the time to end: its grace is longer than preStop and its own limit', (program) => {
  const pod = pods.find(({ metadata }) => metadata.labels?.['app'] === program)?.spec?.template?.spec;
  const [, limit = ''] = /CLOSE_TIMEOUT_MS = ([\d_]+)/.exec(readSource(`${program}/main.ts`)) ?? [];
  const lifecycle = pod?.containers[0]['lifecycle'] as { preStop: { exec: { command: [string, string] } } } | undefined;
  const [sleep, seconds] = lifecycle?.preStop.exec.command ?? ['sleep', '0'];
  expect([sleep, program === 'api' && Number(seconds) < 5]).toEqual(['sleep', false]);
  const neededMs = Number(seconds) * 1_000 + Number(limit.replaceAll('_', ''));
  expect(neededMs).toBeGreaterThanOrEqual(20_000);
  expect(Number(pod?.['terminationGracePeriodSeconds']) * 1_000).toBeGreaterThan(neededMs);
});

test('what scales and what protects names a workload, and workers scale by every queue and their own version', () => {
  const workloads = named('Deployment').map(({ metadata }) => metadata.name);
  expect(workloads).toHaveLength(2);
  const scaled = [...named('HorizontalPodAutoscaler'), ...named('ScaledObject')].map(
    ({ spec }) => (spec?.['scaleTargetRef'] as { name: string } | undefined)?.name,
  );
  expect(new Set(scaled)).toEqual(new Set(workloads));
  expect(named('PodDisruptionBudget')).toHaveLength(2);
  const [scaler] = named('ScaledObject');
  const triggers = scaler?.spec?.['triggers'] as {
    type: string;
    metadata: Record<string, string>;
    authenticationRef: unknown;
  }[];
  const worker = pods.find(({ metadata }) => metadata.labels?.['app'] === 'worker') ?? expect.unreachable();
  const environment = environmentOf(RESOURCES, worker);
  for (const [index, taskQueue] of [TASK_QUEUE, DELIVERY_TASK_QUEUE].entries())
    expect(triggers[index]).toMatchObject({
      type: 'temporal',
      metadata: {
        taskQueue,
        endpoint: environment['TEMPORAL_ADDRESS'],
        namespace: environment['TEMPORAL_NAMESPACE'],
        workerDeploymentName: environment['WORKER_DEPLOYMENT_NAME'],
        workerDeploymentBuildId: environment['WORKER_BUILD_ID'],
      },
      authenticationRef: { name: named('TriggerAuthentication')[0]?.metadata.name },
    });
  expect(worker.spec?.template?.spec.containers[0].image).toMatch(new RegExp(`:${environment['WORKER_BUILD_ID']}$`));
});

describe('docs/deploy.md', () => {
  const page = readSource('docs/deploy.md');
  const known = new Set(VARIABLES);

  test('makes the namespace of the example, which no manifest makes, before what it puts there', () => {
    const namespace = named('Deployment')[0]?.metadata['namespace'];
    const [, made, used] = /kubectl create namespace (\S+)\n[\s\S]*?--namespace (\S+)/.exec(page) ?? [];
    expect([made, used]).toEqual([namespace, namespace]);
    expect(named('Namespace')).toEqual([]);
  });

  test('has the token of an operator in no argument, which the audit log of Kubernetes keeps', async () => {
    const [, script = ''] = /kubectl exec --stdin[\s\S]*?sh -c '([^']*)' ops/.exec(page) ?? [];
    expect(page).not.toContain('env OPERATOR_TOKEN=');
    const shown = script.replace('exec node ops/main.ts', 'exec printenv OPERATOR_TOKEN #');
    expect((await execa('sh', ['-c', shown, 'ops', 'stuck'], { input: 'op_token\n' })).stdout).toBe('op_token');
  });

  test('counts the connections to PostgreSQL of all APIs, two versions of the worker, their rollouts, and commands', () => {
    const formula = /APIs × \(P \+ (\d+)\) \+ workers × \(P \+ (\d+)\) \+ (\d+)/.exec(readSource('docs/operations.md'));
    const [ofApi = 0, ofWorker = 0, commands = 0] = (formula ?? []).slice(1).map(Number);
    const pool = Environment.shape.DATABASE_POOL_MAX.parse(undefined);
    const limitOf = (kind: string, field: string): number => Number(named(kind)[0]?.spec?.[field]);
    const surgeOf = (app: string): number => {
      const deployment = named('Deployment').find(({ metadata }) => metadata.labels?.['app'] === app);
      const strategy = deployment?.spec?.['strategy'] as { rollingUpdate: { maxSurge: number } } | undefined;
      return strategy?.rollingUpdate.maxSurge ?? expect.unreachable(app);
    };
    const apis = limitOf('HorizontalPodAutoscaler', 'maxReplicas') + surgeOf('api');
    const workers = 2 * (limitOf('ScaledObject', 'maxReplicaCount') + surgeOf('worker'));
    const total = apis * (pool + ofApi) + workers * (pool + ofWorker) + commands;
    expect(page.replaceAll('\n', ' ')).toContain(
      `at least ${total}: ${apis} × ${pool + ofApi} for APIs, ${workers} × ${pool + ofWorker} for workers, and ${commands} for`,
    );
  });

  test('names only variables that the configuration knows, and every one that the manifests set', () => {
    const mentioned = [...page.matchAll(/`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`/g)].map(([, name = '']) => name);
    const bare = (name: string) => name.replace(/_FILE$/, '');
    expect(mentioned.filter((name) => !known.has(bare(name)))).toEqual([]);
    const set = pods.flatMap((pod) => Object.keys(environmentOf(RESOURCES, pod))).map(bare);
    expect(set.filter((name) => !known.has(name))).toEqual([]);
    const explained = set.filter((name) => !['HOST', 'PORT'].includes(name) && !name.startsWith('WORKER_'));
    expect(explained.filter((name) => !mentioned.includes(name))).toEqual([]);
  });

  test('lists the keys of each secret, writes the one of KEDA without a line end, and lists the search attributes', () => {
    for (const secret of ['service', 'migrate']) {
      const mounted = pods.flatMap((pod) => Object.values(environmentOf(RESOURCES, pod)));
      const files = mounted.filter((value) => value.startsWith(`/run/secrets/${secret}/`));
      const [, row = ''] = new RegExp(`^\\| \`${secret}\` \\| (.+) \\|$`, 'm').exec(page) ?? [];
      expect(new Set(row.replaceAll('`', '').split(', '))).toEqual(new Set(files.map((file) => path.basename(file))));
    }
    // KEDA takes the whole file, and a line's end is in no header.
    const shared = named('TriggerAuthentication')[0]?.spec?.['secretTargetRef'] as [{ key: string }] | undefined;
    expect(page).toMatch(new RegExp(`^printf %s ".+" > secrets/service/${shared?.[0].key}$`, 'm'));
    for (const name of Object.keys(SEARCH_ATTRIBUTES)) expect(page).toContain(`\`${name}\``);
    expect(page).toContain(`for name in ${Object.keys(SEARCH_ATTRIBUTES).join(' ')}; do`);
  });
});
