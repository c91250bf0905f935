/** The capability catalog and the launch gates for people (contract §14, §15): the JSON answers' own data, in words. */
import { html } from 'ghtml';
import type { CapabilityState } from '../../domain/capability-state.ts';
import type { Gate, GateReason } from '../../domain/gate.ts';
import type { catalogResource } from '../../domain/resource/capability.ts';
import type { gatesResource } from '../../domain/resource/gate.ts';
import { document, type Frame } from './layout.ts';

type Catalog = ReturnType<typeof catalogResource>;
type Entry = Catalog['services'][number];
type Gates = ReturnType<typeof gatesResource>;

const STATE_TEXT: Record<CapabilityState, { readonly title: string; readonly meaning: string }> = {
  live: { title: 'Live', meaning: 'Would move real value for partners.' },
  'local sandbox': { title: 'Local sandbox', meaning: 'Works on your own machine, as a simulation. No value moves.' },
  gated: { title: 'Gated', meaning: 'Exists, and is closed or limited until its next gate opens.' },
  maintenance: { title: 'Maintenance', meaning: 'Would have been live, and be paused.' },
  unavailable: { title: 'Unavailable', meaning: 'Is not offered.' },
};

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
  not_approved: 'two operators have not approved its evidence',
  no_live_adapter: 'there is no live adapter to pay out with',
  other_environment: 'its evidence is of another environment',
  unreadable: 'its evidence could not be read',
};

/**
 * @param catalog what everyone may read
 * @param gates as they stand now
 */
export const statusPage = (frame: Frame, catalog: Catalog, gates: Gates): string =>
  document(frame, {
    title: 'Status',
    path: '/status',
    main: html`<h1>Status</h1>
<p class="lead"><strong>No live corridor.</strong> No capability is live: code that exists, or an address that answers, makes none so.</p>
<p>This process runs as ${gates.environment}. Shown is what everyone may read of the catalog of <time datetime="${catalog.updated_at}">${day(catalog.updated_at)}</time>; partners read all of it at <code>GET /v2/capabilities</code> with their key.</p>
!${gateSection(gates)}
!${catalog.states.map((state) =>
      stateSection(
        state,
        catalog.services.filter((entry) => entry.state === state),
      ),
    )}`,
  });

const gateSection = ({ open, gates }: Gates): string =>
  html`<section aria-labelledby="gates">
<h2 id="gates">Launch gates: ${open ? 'all open' : 'not all open'}</h2>
<p>They stand before real value. Outside the local sandbox one closed gate closes every value operation, and even with all of them open there is no live adapter.</p>
<ul class="gates">
!${gates.map(
    ({ gate, open: isOpen, reason }) =>
      html`<li><strong>${GATE_NAME[gate]}</strong> <span class="state">${isOpen ? 'open' : 'closed'}</span> !${reason === null ? '' : html`<span class="why">${REASON_TEXT[reason]}</span>`}</li>`,
  )}
</ul>
</section>`;

const stateSection = (state: CapabilityState, entries: readonly Entry[]): string =>
  html`<section aria-labelledby="${idOf(state)}">
<h2 id="${idOf(state)}">${STATE_TEXT[state].title}: ${entries.length === 0 ? 'none' : entries.length}</h2>
<p>${STATE_TEXT[state].meaning}</p>
!${entries.map(capability)}
</section>`;

const capability = (entry: Entry): string =>
  html`<article id="${entry.id}">
<h3>${entry.name} <span class="state">${entry.state}</span></h3>
<p>${entry.description}</p>
<dl class="facts">
<div><dt>Used through</dt><dd>${entry.surface}</dd></div>
<div><dt>Offered in</dt><dd>${entry.environment}, to ${entry.audience === 'public' ? 'everyone' : 'authenticated partners'}</dd></div>
<div><dt>Evidence</dt><dd>!${evidence(entry)}</dd></div>
<div><dt>Next gate</dt><dd>${GATE_NAME[entry.next_gate]}</dd></div>
<div><dt>Reviewed</dt><dd><time datetime="${entry.reviewed_at}">${day(entry.reviewed_at)}</time></dd></div>
</dl>
</article>`;

const evidence = (entry: Entry): string =>
  entry.evidence.length === 0
    ? html`${entry.evidence_level}`
    : html`<details><summary>${entry.evidence_level}: ${entry.evidence.length === 1 ? 'one test' : `${entry.evidence.length} tests`}</summary>
<ul>!${entry.evidence.map((test) => html`<li>${test}</li>`)}</ul></details>`;

const idOf = (state: CapabilityState): string => `state-${state.replaceAll(' ', '-')}`;

const day = (timestamp: string): string => timestamp.slice(0, 10);
