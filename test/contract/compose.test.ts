/** `docker-compose.yml` and the Dockerfile: closed by default, and with files that exist. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { repositoryRoot } from '../../process/local/place.ts';
import { readSource } from '../support/source.ts';
import { words } from '../support/words.ts';

const SOURCE = readSource('docker-compose.yml');
const Service = z.looseObject({
  image: z.string().optional(),
  build: z.looseObject({ args: z.record(z.string(), z.string()) }).optional(),
  ports: z.array(z.string()).default([]),
  profiles: z.array(z.string()).default([]),
  /** Null passes the variable on from the environment where it is set. */
  environment: z.record(z.string(), z.string().nullable()).default({}),
  mem_limit: z.string().optional(),
  pids_limit: z.int().optional(),
  networks: z.array(z.string()).default([]),
  depends_on: z.record(z.string(), z.object({ condition: z.string() })).default({}),
  configs: z.array(z.object({ source: z.string(), target: z.string().optional() })).default([]),
});
const Config = z.union([z.strictObject({ content: z.string() }), z.strictObject({ file: z.string() })]);
const Network = z.strictObject({ internal: z.literal(true) }).nullable();
const Compose = z.looseObject({
  services: z.record(z.string(), Service),
  networks: z.record(z.string(), Network),
  configs: z.record(z.string(), Config),
});
const COMPOSE = Compose.parse(parse(SOURCE, { merge: true }));
const SERVICES = Object.entries(COMPOSE.services);
const OWN = SERVICES.filter(([, { build }]) => build !== undefined);
const DOCKERFILE = readSource('Dockerfile');

test('the services of the header exist, and each depends on services and configs that exist', () => {
  expect(SERVICES.map(([name]) => name)).toEqual(
    expect.arrayContaining(words('postgres temporal temporal-ui api worker migrate sandbox-api sandbox-worker')),
  );
  for (const [name, { depends_on, configs }] of SERVICES) {
    for (const needed of Object.keys(depends_on))
      expect(COMPOSE.services, `${name} needs ${needed}`).toHaveProperty([needed]);
    for (const { source } of configs) expect(COMPOSE.configs, `${name} needs ${source}`).toHaveProperty([source]);
  }
});

test('every image has an exact version, a digest and a variable, and none is the retired auto-setup', () => {
  const images = new Set(SERVICES.flatMap(([, { image, build }]) => image ?? Object.values(build?.args ?? {})));
  expect(images.size).toBeGreaterThan(4);
  const pinned = /^\$\{[A-Z_]+_IMAGE:-[a-z/-]+:v?\d+\.\d+(\.\d+)?(-[a-z-]+)?@sha256:[0-9a-f]{64}\}$/;
  for (const image of images) expect(image).toMatch(pinned);
  expect(SOURCE).not.toContain('auto-setup');
  const node = COMPOSE.services['api']?.build?.args['NODE_IMAGE'];
  expect(`\${NODE_IMAGE:-${/^ARG NODE_IMAGE=(\S+)$/m.exec(DOCKERFILE)?.[1]}}`).toBe(node);
  for (const from of DOCKERFILE.match(/^FROM \S+/gm) ?? []) expect(from).toMatch(/^FROM (\$\{NODE_IMAGE\}|packages)$/);
});

test.for(['.gitignore', '.dockerignore'])('%s keeps the files of secrets out', (file) => {
  expect(readSource(file).split('\n')).toEqual(expect.arrayContaining(['.env', '.env.*', '/secrets']));
});

test('ports are published to this machine only, and not those of database, Temporal and metrics', () => {
  const published = SERVICES.flatMap(([name, { ports }]) => ports.map((port) => `${name} ${port}`));
  for (const port of published) expect(port).toMatch(/ 127\.0\.0\.1:\d+:\d+$/);
  expect(published.map((port) => port.split(' ')[0])).toEqual(words('temporal-ui api sandbox-api prometheus grafana'));
});

test('an API names itself by the address at which it is published', () => {
  for (const name of ['api', 'sandbox-api']) {
    const { ports, environment } = COMPOSE.services[name] ?? expect.unreachable(name);
    const address = `http://${ports[0]?.replace(/:\d+$/, '')}`;
    expect([address, `\${PUBLIC_BASE_URL:-${address}}`], name).toContain(environment['PUBLIC_BASE_URL']);
  }
  // Its simulated providers call the API from its own container.
  expect(COMPOSE.services['sandbox-worker']?.environment['PUBLIC_BASE_URL']).toBe('http://sandbox-api:3000');
});

test('every service has limits of memory and processes, and networks that exist', () => {
  for (const [name, { mem_limit: memory, pids_limit: processes, networks }] of SERVICES) {
    expect([name, memory, processes]).toEqual([name, expect.stringMatching(/^\d+[mg]$/), expect.any(Number)]);
    expect(networks.length, name).toBeGreaterThan(0);
    for (const network of networks) expect(COMPOSE.networks, `${name} is on ${network}`).toHaveProperty([network]);
  }
});

test('who publishes no port and calls nobody outside is on internal networks alone', () => {
  const isInternal = (network: string): boolean => COMPOSE.networks[network] !== null;
  const open = SERVICES.filter(([, { networks }]) => !networks.every(isInternal)).map(([name]) => name);
  const publishing = SERVICES.filter(([, { ports }]) => ports.length > 0).map(([name]) => name);
  // The workers call subscribers and providers.
  expect(new Set(open)).toEqual(new Set([...publishing, 'worker', 'sandbox-worker']));
});

test('the database is reached by who uses it, and the local sandbox shares no network with the remote services', () => {
  const on = (name: string): readonly string[] => COMPOSE.services[name]?.networks ?? [];
  const meet = (one: string, other: string): boolean => on(one).some((network) => on(other).includes(network));
  const users = SERVICES.map(([name]) => name).filter((name) => name !== 'postgres' && meet(name, 'postgres'));
  const own = OWN.map(([name]) => name);
  expect(new Set(users)).toEqual(new Set([...own, 'temporal', 'temporal-schema']));
  const [sandbox, remote] = [true, false].map((is) => own.filter((name) => name.startsWith('sandbox-') === is));
  for (const one of sandbox ?? [])
    for (const other of remote ?? []) expect(meet(one, other), `${one} ${other}`).toBe(false);
  for (const [name, { depends_on }] of SERVICES)
    for (const [needed, { condition }] of Object.entries(depends_on))
      if (condition !== 'service_completed_successfully') expect(meet(name, needed), `${name} ${needed}`).toBe(true);
});

test('Prometheus and Grafana start only by their profile, read files that exist, and Grafana lets nobody change it', () => {
  for (const [name, { profiles, environment, configs }] of SERVICES)
    if (['prometheus', 'grafana'].includes(name)) {
      expect([name, profiles, configs.length]).toEqual([name, ['observability'], name === 'grafana' ? 3 : 2]);
      if (name === 'grafana')
        expect(environment).toMatchObject({
          GF_AUTH_ANONYMOUS_ORG_ROLE: 'Viewer',
          GF_AUTH_BASIC_ENABLED: 'false',
          GF_AUTH_DISABLE_LOGIN_FORM: 'true',
          GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION: 'true',
        });
    }
  const files = Object.values(COMPOSE.configs).flatMap((config) => ('file' in config ? [config.file] : []));
  expect(files).toHaveLength(5);
  for (const file of files) expect(existsSync(path.join(repositoryRoot, file)), file).toBe(true);
});

test('every secret is required, and none has a value in the file', () => {
  const variables = [...SOURCE.matchAll(/(?<!\$)\$\{([A-Z_]+)([^}]*)\}/g)].map(([, name = '', rule = '']) => ({
    name,
    rule,
  }));
  const secret = /PASSWORD|PWD|SECRET|KEY|PEPPER/;
  const secrets = variables.filter(({ name }) => secret.test(name));
  expect(new Set(secrets.map(({ name }) => name)).size).toBeGreaterThanOrEqual(18);
  for (const { name, rule } of secrets) expect(`${name}${rule}`).toMatch(/^[A-Z_]+:\?\w+/);
  for (const [service, { environment }] of SERVICES)
    for (const [name, value] of Object.entries(environment))
      if (secret.test(name) && value !== null) expect(value, `${service} ${name}`).toMatch(/^\$\{[A-Z_]+:\?[^}]+\}$/);
  expect(SOURCE).not.toMatch(/:\/\/\w+:[^$]\w*@/);
});

test('the runtime is remote-sandbox, and the local sandbox starts only by its profile', () => {
  for (const [name, { environment, profiles }] of OWN) {
    const runtime = environment['RUNTIME_ENVIRONMENT'];
    expect([name, runtime, profiles]).toEqual(
      name.startsWith('sandbox-') ? [name, 'local-sandbox', ['sandbox']] : [name, 'remote-sandbox', []],
    );
  }
});

test('the local sandbox shares neither database nor namespace with the remote services', () => {
  const of = (name: string, variable: string) => COMPOSE.services[name]?.environment[variable];
  for (const variable of ['DATABASE_URL', 'TEMPORAL_NAMESPACE']) {
    expect(of('sandbox-worker', variable)).toBeDefined();
    expect(of('sandbox-worker', variable)).not.toBe(of('worker', variable));
  }
});
