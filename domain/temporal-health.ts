/** What can be wrong with Temporal, as readiness, logs and operators' commands say it. */

/** Each cause, and what it makes of Temporal: it will answer again (`degraded`), or an operator must act (`down`). */
const STATUS_OF_CAUSE = {
  not_answering: 'degraded',
  tls_failed: 'down',
  credentials_refused: 'down',
  right_missing: 'down',
  namespace_missing: 'down',
  search_attributes_missing: 'down',
  search_attributes_of_other_type: 'down',
} as const;
export type TemporalCause = keyof typeof STATUS_OF_CAUSE;
export const TEMPORAL_CAUSES = Object.keys(STATUS_OF_CAUSE) as readonly TemporalCause[];

export type TemporalFault = {
  readonly status: 'degraded' | 'down';
  readonly cause: TemporalCause;
  /** For operators: it can name a host. */
  readonly sentence: string;
};
export type TemporalHealth = { readonly status: 'up'; readonly cause: null } | TemporalFault;

const DETAIL_LENGTH_MAX = 200;
const SENTENCES: Readonly<Record<TemporalCause, string>> = {
  not_answering: 'Temporal does not answer',
  tls_failed: 'Temporal cannot be reached by TLS',
  credentials_refused: 'Temporal refuses the API key or the certificate',
  right_missing: 'Temporal refuses, because a right is missing',
  namespace_missing: 'Temporal does not have the namespace',
  search_attributes_missing: "Temporal's namespace lacks search attributes",
  search_attributes_of_other_type: "Temporal's namespace has search attributes of another type than Keyword",
};

/** @param detail what Temporal or the network said */
export const temporalFault = (cause: TemporalCause, detail: string): TemporalFault => ({
  status: STATUS_OF_CAUSE[cause],
  cause,
  sentence: `${SENTENCES[cause]}: ${inOneLine(detail)}`,
});

/** The library for gRPC ends some texts with a note that is empty. */
const inOneLine = (detail: string): string =>
  detail
    .replace(/\s+/g, ' ')
    .replace(/ ?Resolution note: ?$/, '')
    .trim()
    .slice(0, DETAIL_LENGTH_MAX)
    .replace(/\.$/, '');
