/**
 * Debian's Chromium, controlled by playwright-core. It can reach only this machine. If it is missing and this process
 * may install packages, it is installed once.
 */
import { existsSync } from 'node:fs';
import { execa } from 'execa';
import { type Browser, chromium } from 'playwright-core';

const INSTALL_TIMEOUT_MS = 240_000;
const PROGRAM = '/usr/bin/chromium';

const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Every other host is unknown, for pages and for the browser itself.
  '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1',
];

/** @throws Error that names the missing package */
export async function startBrowser(): Promise<Browser> {
  if (!existsSync(PROGRAM)) await installBrowser();
  return chromium.launch({ executablePath: PROGRAM, headless: true, args: ARGUMENTS });
}

async function installBrowser(): Promise<void> {
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) {
    throw new Error(`The tests of the pages need Chromium at ${PROGRAM}: install Debian's package chromium.`);
  }
  process.stdout.write(
    `  Chromium for the tests: it is not at ${PROGRAM}, so apt-get installs Debian's package once (about a minute)\n`,
  );
  const apt = execa({
    env: { DEBIAN_FRONTEND: 'noninteractive' },
    timeout: INSTALL_TIMEOUT_MS,
    reject: false,
    all: true,
  });
  await apt`apt-get update`;
  const { failed, all } = await apt`apt-get install -y --no-install-recommends chromium`;
  if (!failed) return;
  const reason = all.trim().split('\n').at(-1);
  throw new Error(`The tests of the pages need Chromium at ${PROGRAM}, and apt-get could not install it: ${reason}`);
}
