/**
 * The time-skipping server as a folder with its jars and one program, `run`, whose argument is the port. Its clock does
 * not move by itself: it is started with the same options as the server that the SDK downloads.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort, isListening } from './port.ts';

const LOGBACK_VERSION = '1.5.18';
const COPY_DEPENDENCIES = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies';
const SHARE_TIMEOUT_MS = 30_000;
const POLL_MS = 50;

/** Writes everything but the jars to `directory`. Returns what Maven needs to download those. */
export async function layOut(
  directory: string,
  version: string,
): Promise<{ pom: string; pluginGoal: string; jars: string }> {
  const assembly = path.join(directory, 'assembly');
  const pom = path.join(directory, 'pom.xml');
  await mkdir(assembly);
  await writeFile(pom, pomFor(version.replace(/^v/, '')));
  await writeFile(path.join(assembly, 'logback.xml'), LOGBACK);
  await writeFile(path.join(assembly, 'run'), LAUNCHER);
  await chmod(path.join(assembly, 'run'), 0o755);
  return { pom, pluginGoal: COPY_DEPENDENCIES, jars: path.join(assembly, 'jars') };
}

/**
 * Starts the server once and stores the loaded classes in a form that Java reads faster. Later starts take a third of
 * the time. If this fails the server only starts more slowly, so the failure is ignored.
 */
export async function shareClasses(
  program: string,
  env: Readonly<Record<string, string | undefined>>,
  signal?: AbortSignal,
): Promise<void> {
  const archive = path.join(path.dirname(program), ARCHIVE);
  const fresh = `${archive}.${process.pid}`;
  const port = await freePort();
  const server = spawn(program, [String(port)], {
    env: { ...env, ARCHIVE_CLASSES_AT: fresh },
    stdio: 'ignore',
    signal,
  });
  server.on('error', () => undefined);
  const ended = once(server, 'exit').catch(() => undefined);
  const deadline = Date.now() + SHARE_TIMEOUT_MS;
  while (server.exitCode === null && !signal?.aborted && Date.now() < deadline && !(await isListening(port)))
    await sleep(POLL_MS);
  server.kill('SIGTERM');
  await ended;
  await rename(fresh, archive).catch(() => rm(fresh, { force: true }));
}

const dependency = (group: string, artifact: string, version: string): string =>
  `<dependency><groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version></dependency>`;

const pomFor = (version: string): string => `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>test-server</artifactId><version>1</version>
  <dependencies>
    ${dependency('io.temporal', 'temporal-test-server', version)}
    ${dependency('ch.qos.logback', 'logback-classic', LOGBACK_VERSION)}
  </dependencies>
</project>
`;

/** Without it the server prints megabytes of debug lines. */
const LOGBACK = `<configuration>
  <appender name="stderr" class="ch.qos.logback.core.ConsoleAppender"><target>System.err</target><encoder><pattern>%msg%n</pattern></encoder></appender>
  <root level="ERROR"><appender-ref ref="stderr"/></root>
</configuration>
`;

const ARCHIVE = 'classes.jsa';

/**
 * `exec` keeps the pid, so that a signal to this program reaches the server. A background loop ends the server when the
 * parent was killed. `-Xlog:disable` also hides the warning that another Java version made the archive.
 */
const LAUNCHER = `#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
parent=$PPID
( while kill -0 "$parent" 2>/dev/null && kill -0 "$$" 2>/dev/null; do sleep 2; done; kill "$$" 2>/dev/null ) </dev/null >/dev/null 2>&1 &
if [ -n "$ARCHIVE_CLASSES_AT" ]; then sharing="-XX:ArchiveClassesAtExit=$ARCHIVE_CLASSES_AT"; else sharing="-XX:SharedArchiveFile=$here/${ARCHIVE}"; fi
exec "\${JAVA_HOME:+$JAVA_HOME/bin/}java" "$sharing" -Xshare:auto -Xlog:disable -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \\
  -Dlogback.configurationFile="$here/logback.xml" -cp "$here/jars/*" io.temporal.testserver.TestServer "$@"
`;
