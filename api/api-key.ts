/** Issues API keys: the raw key for its owner, this once, and what is stored of it (contract §3). */
import { newId } from '../db/id.ts';
import type { NewApiKey } from '../db/queries/api-key.ts';
import { environmentName } from '../domain/runtime.ts';
import type { ApiDeps } from './deps.ts';
import { generateApiKey, hashApiKey, KEY_PREFIX_LENGTH } from './http/credential.ts';

export type IssuedApiKey = { readonly apiKey: string; readonly record: NewApiKey };

/** Makes a key of this environment; it is none until its record is committed. */
export function issueApiKey(
  { runtime, config }: Pick<ApiDeps, 'runtime' | 'config'>,
  wanted: Pick<NewApiKey, 'orgId' | 'name' | 'scope' | 'expiresAt' | 'createdAt'>,
): IssuedApiKey {
  const apiKey = generateApiKey(runtime);
  const [pepper] = config.apiKeyPeppers;
  return {
    apiKey,
    record: {
      ...wanted,
      keyId: newId(),
      environment: environmentName(runtime),
      prefix: apiKey.slice(0, KEY_PREFIX_LENGTH),
      keyHash: hashApiKey(pepper, apiKey),
      pepperId: pepper.id,
    },
  };
}
