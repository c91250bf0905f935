/** What `npm start` prints when everything is ready: the posture, the addresses, and a first command. */
import path from 'node:path';
import { styleText } from 'node:util';
import { firstRequest } from '../../api/pages/first-request.ts';
import { POSTURE } from '../../domain/posture.ts';
import type { RuntimeEnvironment } from '../../domain/runtime.ts';
import type { StackAddresses } from '../../process/local/running-stack.ts';

type Banner = StackAddresses & {
  readonly seconds: number;
  readonly runtime: RuntimeEnvironment;
  /** Undefined when the database is not the embedded one. */
  readonly dataDirectory: string | undefined;
  readonly logDirectory: string;
};

/** Elsewhere every step of the demo would be 503, and no webhook may go to this machine. */
const SANDBOX_ROWS: readonly [string, string][] = [
  ['Or', 'npm run demo'],
  ['Webhooks', 'may go to this machine (WEBHOOK_ALLOW_LOCAL_TARGETS): npm run sandbox -- listen'],
];

export function banner(shown: Banner): string {
  const ready = styleText('green', `Ready in ${shown.seconds.toFixed(1)} s`);
  const posture = styleText('bold', POSTURE[shown.runtime]);
  const rows: [string, string][] = [
    ['API', `${shown.apiUrl}   reference ${shown.apiUrl}/docs   status ${shown.apiUrl}/status`],
    [
      'Temporal',
      shown.temporalUiUrl
        ? `${shown.temporalUiUrl}   server ${shown.temporalAddress}`
        : `server ${shown.temporalAddress}`,
    ],
    [
      'Data',
      shown.dataDirectory
        ? `${shorten(shown.dataDirectory)}   empty it: npm run reset`
        : 'in the database of DATABASE_URL',
    ],
    ['Logs', shorten(shown.logDirectory)],
    ['Try', firstRequest(shown.apiUrl)],
    ...(shown.runtime === 'local-sandbox' ? SANDBOX_ROWS : []),
    ['Stop', 'Ctrl-C'],
  ];
  return [
    `${ready} — ${posture}`,
    ...rows.map(([label, text]) => `  ${styleText('dim', label.padEnd(10))}${text}`),
  ].join('\n');
}

/** The relative path, for a folder below the working directory. */
function shorten(directory: string): string {
  const relative = path.relative(process.cwd(), directory);
  return relative.startsWith('..') || path.isAbsolute(relative) ? directory : relative;
}
