/**
 * The status page: the capability catalog and the launch gates (contract §14, §15), with the data of their JSON
 * answers.
 */
import { html } from 'ghtml';
import { NO_SURFACE } from '../../domain/capability-catalog.ts';
import type { CapabilityState } from '../../domain/capability-state.ts';
import type { Gate, GateReason } from '../../domain/gate.ts';
import type { catalogResource } from '../../domain/resource/capability.ts';
import type { gatesResource } from '../../domain/resource/gate.ts';
import { breakable } from './code.ts';
import { document, type Frame } from './layout.ts';

type Catalog = ReturnType<typeof catalogResource>;
type Entry = Catalog['services'][number];
type Gates = ReturnType<typeof gatesResource>;

const STATE_TEXT: Record<CapabilityState, { readonly title: string; readonly meaning: string }> = {
  live: { title: 'Live', meaning: 'Moves real value for partners.' },
  'local sandbox': { title: 'Local sandbox', meaning: 'Works on your own machine, as a simulation. No value moves.' },
  gated: { title: 'Gated', meaning: 'Closed or limited until its next gate opens. Each entry says whether it exists.' },
  maintenance: { title: 'Maintenance', meaning: 'Was live, and is paused.' },
  unavailable: { title: 'Unavailable', meaning: 'Not offered.' },
};

const AUDIENCE_TEXT: Record<Entry['audience'], string> = {
  public: 'everyone, without a key',
  'authenticated partner': 'authenticated partners',
};

/** Whether a capability is offered. `environment` and `audience` of one that is not are where it would belong. */
function offer({ state, surface, environment, audience }: Entry): string {
  const place = `${environment}, for ${AUDIENCE_TEXT[audience]}`;
  if (state === 'local sandbox') return `In ${place}.`;
  if (state === 'gated' && surface !== NO_SURFACE)
    return `Exists, and is outside the reviewed partner contract. It would belong to: ${place}.`;
  return `${state === 'gated' ? 'Does not exist yet' : 'Not offered'}. It would belong to: ${place}.`;
}

export const GATE_NAME: Record<Gate, string> = {
  compliance_program: 'Compliance program',
  provider_evidence: 'Provider evidence',
  rail_admission: 'Rail admission',
  ledger_reconciliation: 'Ledger reconciliation',
  dispute_accounting: 'Dispute accounting',
  operator_approval: 'Operator approval',
};

export const REASON_TEXT: Record<GateReason, string> = {
  no_evidence: 'no evidence is recorded',
  revoked: 'its evidence was revoked',
  clock_behind: 'the clock is behind its evidence',
  expired: 'its evidence has expired',
  not_approved: 'its evidence is not approved by two operators',
  no_live_adapter: 'there is no live adapter for payouts',
  other_environment: 'its evidence belongs to another environment',
  unreadable: 'its evidence could not be read',
};

/**
 * @param catalog all entries: the posture is no secret
 * @param gates their present state
 */
export const statusPage = (frame: Frame, catalog: Catalog, gates: Gates): string =>
  document(frame, {
    title: 'Status',
    path: '/status',
    main: html`<h1>Status</h1>
<p class="lead"><strong>No live corridor.</strong> No capability is live. Existing code or an answering address does not
make a capability live.</p>
<p>This process runs as ${gates.environment}. The page shows the whole catalog of
!${time(catalog.updated_at)}. It is also at <code>GET /v2/capabilities</code>: all of it with a key, the entries for
everyone without one.</p>
!${gateSection(gates)}
<h2 id="capabilities">Capabilities</h2>
<dl class="facts">
!${catalog.states.map(
      (state) => html`<div>
<dt>${STATE_TEXT[state].title}: ${countOf(catalog, state)}</dt>
<dd>${STATE_TEXT[state].meaning}</dd>
</div>`,
    )}
</dl>
!${table(catalog)}`,
  });

const gateSection = ({ gates }: Gates): string =>
  html`<section aria-labelledby="gates">
<h2 id="gates">Launch gates: ${countOpen(gates)}</h2>
<p>Real value can move only when all gates are open. Outside the local sandbox one closed gate closes every value
operation. Even with all gates open there is no live adapter.</p>
<ul class="gates">
!${gates.map(
    ({ gate, open: isOpen, reason }) =>
      html`<li><strong>${GATE_NAME[gate]}</strong> !${badge(isOpen ? 'open' : 'closed')} !${why(reason)}</li>`,
  )}
</ul>
</section>`;

/** In words, so that nobody reads "not all open" where none is. */
function countOpen(gates: Gates['gates']): string {
  const open = gates.filter((gate) => gate.open).length;
  if (open === 0) return 'all closed';
  return open === gates.length ? 'all open' : `${open} of ${gates.length} open`;
}

const badge = (text: string): string => html`<span class="state">${text}</span>`;

const why = (reason: GateReason | null): string =>
  reason === null ? '' : html`<span class="why">${REASON_TEXT[reason]}</span>`;

const COLUMNS = ['Capability', 'State', 'Used through', 'Offer', 'Evidence', 'Next gate'] as const;

const table = ({ states, services }: Catalog): string =>
  html`<table class="capabilities">
<thead><tr>!${COLUMNS.map((column) => html`<th scope="col">${column}</th>`)}</tr></thead>
<tbody>
!${states.flatMap((state) => services.filter((entry) => entry.state === state)).map(capability)}
</tbody>
</table>`;

const capability = (entry: Entry): string =>
  html`<tr id="${entry.id}">
<th scope="row"><strong>${entry.name}</strong><br><span class="why">${entry.description}</span></th>
!${cells([
    badge(entry.state),
    operations(entry),
    html`${offer(entry)}`,
    evidence(entry),
    html`${GATE_NAME[entry.next_gate]}<br><span class="why">reviewed !${time(entry.reviewed_at)}</span>`,
  ])}
</tr>
`;

/** One a line, a single method beside its path. */
const operations = ({ surface }: Entry): string =>
  surface
    .split(', ')
    .map((operation) => breakable(operation.replace(/^([A-Z]+) /, '$1\u00a0')))
    .join(',<br>');

/** @param values HTML of each column but the first */
const cells = (values: readonly string[]): string =>
  values.map((value, index) => html`<td data-column="${COLUMNS[index + 1]}">!${value}</td>`).join('');

const evidence = (entry: Entry): string =>
  entry.evidence.length === 0
    ? html`${entry.evidence_level}`
    : html`<details><summary>${entry.evidence_level}: ${count(entry.evidence)}</summary>
<ul>!${entry.evidence.map((test) => html`<li>!${breakable(test)}</li>`)}</ul></details>`;

const countOf = ({ services }: Catalog, state: CapabilityState): string =>
  String(services.filter((entry) => entry.state === state).length || 'none');

const count = ({ length }: readonly string[]): string => (length === 1 ? 'one test' : `${length} tests`);

const time = (timestamp: string): string => html`<time datetime="${timestamp}">${timestamp.slice(0, 10)}</time>`;
