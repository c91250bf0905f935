/** Activities that play a provider run only in the local sandbox. */
import { DomainError } from '../domain/error.ts';
import { isRemote, type RuntimeEnvironment } from '../domain/runtime.ts';

type AnyActivity = (input: never) => Promise<unknown>;

/** The same activities in the local sandbox. In a remote runtime, each throws DomainError `local_sandbox_only`. */
export function inLocalSandboxOnly<Group extends Record<string, AnyActivity>>(
  runtime: RuntimeEnvironment,
  group: Group,
): Group {
  if (!isRemote(runtime)) return group;
  const refuse: AnyActivity = async () => {
    throw new DomainError('local_sandbox_only');
  };
  return Object.fromEntries(Object.keys(group).map((name) => [name, refuse])) as Group;
}
