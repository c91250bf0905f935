/** Versions of the worker, as operators read them. A worker without one belongs to no deployment. */

export type WorkerVersion = { readonly deploymentName: string; readonly buildId: string };

/** A queue whose tasks nobody takes. */
export type UnservedQueue = {
  readonly taskQueue: string;
  /** The version that gets the tasks; undefined: workers without one get them. */
  readonly promoted: WorkerVersion | undefined;
  /** The versions that poll it, and get nothing. */
  readonly polling: readonly (WorkerVersion | undefined)[];
};

const versionName = (version: WorkerVersion | undefined): string =>
  version === undefined ? 'without a version' : `of version ${version.deploymentName}/${version.buildId}`;

export const unservedSentence = ({ taskQueue, promoted, polling }: UnservedQueue): string =>
  `no worker ${versionName(promoted)} polls ${taskQueue}, and no other gets its tasks` +
  (polling.length === 0 ? '' : `; those that poll are ${polling.map(versionName).join(', ')}`);

/** The command of Temporal's own command line that gives the tasks to workers that poll; empty if there are none. */
export function promotionCommand({ promoted, polling }: UnservedQueue): string {
  const [first] = polling;
  const deployment = (first ?? promoted)?.deploymentName;
  if (polling.length === 0 || deployment === undefined) return '';
  const target = first === undefined ? '--unversioned' : `--build-id ${first.buildId}`;
  return `temporal worker deployment set-current-version --deployment-name ${deployment} ${target} --yes`;
}
