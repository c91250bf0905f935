/** The two usual proxies before the API, as docs/operations.md configures them. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { execa } from 'execa';
import { freePort } from '../../scripts/stack/port.ts';
import { stretched } from '../support/patience.ts';

export const PROXIES = ['nginx', 'haproxy'] as const;
export type ProxyName = (typeof PROXIES)[number];

/** The program; undefined where it is not installed. */
export async function findProxy(name: ProxyName): Promise<string | undefined> {
  for (const candidate of [name, `/usr/sbin/${name}`])
    if (!(await execa(candidate, ['-v'], { reject: false })).failed) return candidate;
  return undefined;
}

const CONFIGURATIONS: Readonly<
  Record<ProxyName, (own: { directory: string; port: number; apiPort: number }) => string>
> = {
  nginx: ({ directory, port, apiPort }) => `
daemon off;
master_process off;
pid ${directory}/nginx.pid;
error_log ${directory}/error.log;
events {}
http {
  access_log off;
  client_body_temp_path ${directory}/body;
  proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi;
  scgi_temp_path ${directory}/scgi;
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://127.0.0.1:${apiPort};
      proxy_http_version 1.1;
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }
  }
}
`,
  haproxy: ({ port, apiPort }) => `
defaults
  mode http
  timeout connect 5s
  timeout client 20s
  timeout server 20s
  option forwardfor
frontend public
  bind 127.0.0.1:${port}
  default_backend api
backend api
  server api 127.0.0.1:${apiPort}
`,
};

const ARGUMENTS: Readonly<Record<ProxyName, (file: string, directory: string) => readonly string[]>> = {
  nginx: (file, directory) => ['-c', file, '-p', directory],
  haproxy: (file) => ['-db', '-q', '-f', file],
};

const START_TIMEOUT_MS = stretched(10_000);

/** Starts the program in front of the API. @throws Error with what it printed when it does not listen */
export async function startProxy(name: ProxyName, program: string, apiPort: number) {
  const directory = await mkdtemp(path.join(os.tmpdir(), `${name}-`));
  const port = await freePort();
  const file = path.join(directory, `${name}.conf`);
  await writeFile(file, CONFIGURATIONS[name]({ directory, port, apiPort }));
  const running = execa(program, ARGUMENTS[name](file, directory), { reject: false, all: true });
  const end = performance.now() + START_TIMEOUT_MS;
  while (!(await answers(port))) {
    if (running.exitCode !== null || performance.now() > end) {
      running.kill();
      throw new Error(`${name} did not start: ${(await running).all}`);
    }
    await delay(50);
  }
  return {
    port,
    close: async (): Promise<void> => {
      running.kill();
      await running;
      await rm(directory, { recursive: true, force: true });
    },
  };
}

const answers = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/health/live`).then(
    () => true,
    () => false,
  );
