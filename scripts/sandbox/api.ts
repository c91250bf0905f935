/** Calls to the API with a partner's key. */
import {
  ApiError,
  type Client,
  ConnectionFailed,
  createClient,
  SettlementError,
  ValidationFailed,
} from '../../clients/typescript/index.ts';
import { CommandError, EXIT } from '../../ops/command-line/program.ts';
import { nameRunningStack } from '../../process/local/running-stack.ts';
import { NO_STACK } from './command.ts';

export type Api = { readonly url: string; readonly apiKey: string };

/**
 * The API that a command uses: the given one or that of the running stack, with the key of API_KEY.
 *
 * @param scope what the key must be allowed to do, for the message
 * @throws CommandError when there is no stack, or no key
 */
export function apiOf(env: NodeJS.ProcessEnv, given: string | undefined, scope: string): Api {
  const url = given ?? nameRunningStack()?.apiUrl;
  if (url === undefined) throw new CommandError(EXIT.unavailable, `${NO_STACK}, or give --url.`);
  const apiKey = env['API_KEY'];
  if (!apiKey) throw new CommandError(EXIT.configuration, `Set API_KEY to a key with scope ${scope}.`);
  return { url, apiKey };
}

/** @throws CommandError for an address that no key may be sent to */
function clientOf({ url, apiKey }: Api): Client {
  try {
    return createClient({ baseUrl: url, apiKey, attemptsMax: 1 });
  } catch (error) {
    throw new CommandError(EXIT.configuration, error instanceof Error ? error.message : String(error));
  }
}

/**
 * Calls the API. Each request is sent once, so that a command ends at once when there is no API.
 *
 * @throws CommandError when the API does not answer, or answers with an error
 */
export const callApi = <T>(api: Api, call: (client: Client) => Promise<T>): Promise<T> =>
  call(clientOf(api)).catch((error: unknown) => {
    if (error instanceof ConnectionFailed) throw noAnswer(api);
    throw error instanceof SettlementError ? new CommandError(EXIT.refused, refusalText(error)) : error;
  });

export const noAnswer = ({ url }: Api): CommandError =>
  new CommandError(EXIT.unavailable, `The API at ${url} does not answer.`);

function refusalText(error: SettlementError): string {
  if (error instanceof ApiError) return `The API refused with ${error.status}: ${JSON.stringify(error.problem)}`;
  if (error instanceof ValidationFailed) return `The API refused with 422: ${JSON.stringify({ detail: error.faults })}`;
  return error.message;
}
