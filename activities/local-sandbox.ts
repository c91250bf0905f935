/** The activities that play a provider exist in the local sandbox alone. */
import { DomainError } from '../domain/error.ts';
import { isRemote, type RuntimeEnvironment } from '../domain/runtime.ts';

type AnyActivity = (input: never) => Promise<unknown>;

/** Makes these activities refuse every call in a remote runtime. */
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
