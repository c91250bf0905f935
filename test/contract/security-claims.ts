/**
 * The sentences of SECURITY.md, each with the tests that show it: `file > name`, the file without `test/` and `.test.ts`.
 * Where no test can, `not tested:` says why.
 */
export const SECURITY_CLAIMS: readonly (readonly [sentence: string, ...shownBy: string[]])[] = [
  // What is protected
  [
    'Money and its records: no settlement moves without evidence, twice, or for another organization.',
    'db/settlement-transition > changes no status without the transition in its history',
    'db/settlement-transition > is written once if it sums to zero, and not a second time for the same step',
    'db/settlement-change > is refused if the row changed after it was read, and nothing is written',
    'db/settlement-change > is refused for another organization, and nothing is written',
  ],
  [
    "Payees' data: names, contacts and account numbers are sealed at rest, and in no log, event or workflow history.",
    'attack/data-at-rest > no personal data and no secret in any table, history, log line or webhook body',
  ],
  [
    'Credentials: keys, sessions and codes are stored as keyed hashes.',
    'attack/data-at-rest > no personal data and no secret in any table, history, log line or webhook body',
    'api/session > code and contact are not readable in the database',
    'api/pepper > a used key moves to the new pepper and is valid without the old one',
  ],
  [
    'A raw key is shown once, and for 24 hours again to the same request with its idempotency key.',
    'api/creation > is shown again to its key for 24 hours, and then 409 says so',
  ],
  // What holds
  [
    '**Keys.** A key makes no key that may do more than itself.',
    'attack/key-escalation > makes no key with %s',
    'attack/key-escalation > gives the key that it makes both limits, where the request names none',
    'api/api-key > 403 for a key of scope %s that rotates another key, and nothing is written',
  ],
  [
    'It rotates no key that has fewer limits.',
    'attack/key-escalation > does not rotate a key that has fewer limits, and would so get its successor',
  ],
  [
    'Revoking a key ends every key that it made.',
    'attack/key-escalation > ends what the key, its predecessors and its descendants made, and nothing else',
  ],
  [
    "**Turns.** Organizations get the database's connections and the deliveries of webhooks in turn.",
    'db/turns > tenants that wait are served in turn',
    "db/tenant > a tenant's single statement waits for one of another tenant's burst",
    "attack/shares > have one delivery each before another tenant's, however many are older",
  ],
  [
    '**Budgets.** Requests are counted for an organization and for an address, and a big answer costs more.',
    'api/client-address > the keys of one organization share one quota',
    'api/rate-limit > one unit more for each 64 KiB of its answer, and its answer says so',
    'api/rate-limit > the budget of its address too, which is three times that of an organization',
  ],
  [
    'An address and an organization have a cap of requests under way, and an address one of connections.',
    'attack/places > 429 at once beyond those of an organization, which are given back when they end',
    'attack/places > 429 at once beyond those of an address, and not for another address',
    'attack/places > beyond those of an address are closed, until another one ends',
  ],
  [
    'A network has a cap of sign-ups a day.',
    'attack/places > 429 for one sign-up more than %s has in a day, from whatever address of it',
  ],
  [
    '**Quotas.** An organization may hold so many objects of each kind.',
    'api/quota > for one of the %s more than the quota, which is not stored, and binds no key',
    'api/quota > for exactly what is over the quota when many are created at once',
  ],
  [
    'Operators give it the limits of a tier, or a limit of its own.',
    'ops/limit > gives the limits of a tier from the next request on, and names the way back',
    'ops/limit > gives a limit of its own, which stays when the tier changes, and default takes it back',
  ],
  [
    'Outside of the local sandbox a new one begins with the smallest tier.',
    'api/quota > a new organization has the limits of the tier %s %s',
  ],
  [
    '**Failures.** A failed authentication counts against the address that failed, and a valid key there is still accepted.',
    'attack/failure-count > is accepted beside a caller of the same address with %s',
  ],
  [
    'A bad signature counts for its provider and address alone.',
    'attack/failure-count > counts for %s, by its address alone',
  ],
  [
    'A right one-time code signs in beside any number of wrong ones of others.',
    'attack/failure-count > signs in beside any number of wrong codes %s',
  ],
  [
    '**Personal data.** What is known of a recipient is sealed by a key of its own, also in verifications, in the payees of settlements and in stored answers.',
    'ops/recipient > a second operator erases: reads show no personal data, and what was paid stays readable',
    'ops/recipient > says that a recipient was erased, and has no name of it',
    'contract/security > what SECURITY.md says is sealed or not is so in the tables',
  ],
  [
    "Consumers' contacts, payers' tokens, secrets of webhooks and bodies of provider events are sealed by the service's keys.",
    'ops/keys > the lists of sealed columns have every column whose name ends in _sealed, and no other',
    'contract/security > what SECURITY.md says is sealed or not is so in the tables',
  ],
  [
    "**Not sealed:** an organization's `contact_email`, a verification's `rejection_reason`, and each `reference`, `user_reference`, `description` and `metadata`.",
    'contract/security > what SECURITY.md says is sealed or not is so in the tables',
  ],
  ['Keep personal data out of them.', 'not tested: it is asked of partners'],
  [
    '**Erasure.** Two operators destroy the key of an inactive recipient, and nobody can read its data again.',
    'ops/recipient > a second operator erases: reads show no personal data, and what was paid stays readable',
    'ops/recipient > for one operator alone, however the name is spelled',
    'ops/recipient > for an active recipient, one with an open settlement, and an unknown one',
  ],
  [
    'Its metadata is emptied; what else is not sealed stays, and so do bodies of provider events.',
    'ops/recipient > a second operator erases: reads show no personal data, and what was paid stays readable',
  ],
  ['Backups from before still have the key.', "not tested: backups are the operator's"],
  [
    '**Export.** One operator can print all that is held about a recipient, and the audit says who and why.',
    'ops/recipient > prints all that is held, in full and without secrets, and who had it is in the audit',
  ],
  [
    '**Brakes.** Operators suspend an organization, revoke a key, and disable a webhook, which its owner cannot undo.',
    'attack/suspension > a suspension holds from the next request on, for a repeated request too, and ends when it is resumed',
    'ops/api-key > a revoked key and what it made get 401 at once, and nothing else of the organization does',
    'ops/webhook > its owner cannot start it again: not by enabling, a test, a redelivery or a replay',
  ],
  [
    '**Audit.** Every change by an operator has an entry, and needs a token of that operator.',
    'ops/main > every change needs an operator, and a note or an evidence file',
    'ops/settlement > cancel changes nothing when its audit entry cannot be written, and exits with 70',
    'ops/operator > a remote runtime refuses every change %s, also its preview',
  ],
  [
    'Entries form a chain: what is edited, deleted, moved or inserted is found.',
    'attack/audit-chain > %s is noticed',
    'attack/audit-chain > entries that are cut off at the end are noticed by the last hash',
  ],
  [
    '**TLS.** A remote runtime reaches PostgreSQL by verified TLS, Temporal by TLS and the identity provider by https.',
    'config > a database that is reached without verified TLS: %s',
    'config > a Temporal that is reached without TLS: %s',
    'config > %s with an identity provider without TLS',
  ],
  [
    '`TLS_EXEMPT_HOSTS` names exceptions for the first two.',
    'config > need TLS for both addresses, as the service does',
  ],
  [
    '**Destinations.** Webhooks go to public addresses only, checked at each connection.',
    'activities/guarded-http > no connection to a name with %s',
    'activities/guarded-http > no request when the name has a private address at the next attempt',
    'config > %s never sends webhooks to local targets',
  ],
  [
    'A worker has a bounded number of first attempts in flight to one host.',
    'activities/destination > a host has at most so many requests in flight, whichever path or port they go to',
    'activities/webhook-subscription > has a bounded number of requests to one host over all subscriptions, and holds up no other host',
  ],
  [
    '**Look-alikes.** Names are screened as people see them.',
    'attack/look-alike > finds the word %s',
    'attack/look-alike > does not find it in %j',
  ],
  [
    'Characters that show nothing are refused in names and references.',
    'attack/look-alike > is refused in names and references: %s',
  ],
  // Model
  [
    'strict parsing, closed schemas, budgets, time limits ([docs/security.md](docs/security.md))',
    'attack/mass-assignment > 422 extra_forbidden for every field that the body does not have, and nothing is written',
    'attack/slow-client > hundreds of slow connections end with 408, and other callers are answered meanwhile',
  ],
  [
    "every query has the organization's id; foreign objects are 404",
    "attack/tenancy > 404 for another tenant's id, as for an unknown id, headers included, and nothing is written",
    "attack/tenancy > every list shows the tenant's own objects and no other's",
  ],
  [
    'budgets of one-time codes by address, by contact and in all',
    'api/otp-budget > 429 once its codes of the hour are used, to however many contacts',
    'api/otp-budget > is locked down after its wrong codes of a day: one code an hour with one try, which still signs in',
    'api/otp-budget > too many wrong codes leave new challenges one try',
  ],
  [
    'signatures over the exact bytes; evidence is judged in the database',
    'api/idverify-event > 401 for every invalid one, before anything is parsed or written',
    'db/evidence-race > evidence first: funded, although the wait is over',
  ],
  [
    'the guarded dialler, time limits, a turn for each subscription',
    'activities/guarded-http > no connection for any of 100 spellings of a private target, whether http or https',
    'activities/webhook-subscription > reaches the others while one organization has subscribers that hang',
  ],
  [
    'two operators for a gate, a new key, an unknown payout and an erasure; the role of the service owns no table',
    'ops/operator > two approvals are by two tokens: one person cannot approve under two names',
    'ops/settlement-workflow > two operators agree before a review is resolved outside the local sandbox',
    'ops/organization > one operator alone gets no key, however the name is spelled',
    'ops/recipient > for one operator alone, however the name is spelled',
    'db/privilege > does not start with %s, and no statement runs with it',
  ],
  [
    'keys and pepper are not in the database',
    'ops/keys > no command shows a key, and no audit entry holds one',
    'attack/data-at-rest > no personal data and no secret in any table, history, log line or webhook body',
  ],
  // Boundaries
  ["TLS ends at the operator's proxy.", 'not tested: the proxy is not part of the service'],
  [
    "Name it in `TRUSTED_PROXIES`; nothing else may reach the API's port.",
    'config > %s without TRUSTED_PROXIES',
    'api/client-address > is the peer when the peer is no trusted proxy, whatever the header says',
  ],
  [
    'PostgreSQL and Temporal are trusted, and reachable by the service only.',
    'contract/compose > the database is reached by who uses it, and the local sandbox shares no network with the remote services',
  ],
  [
    '`TEMPORAL_PAYLOAD_KEYS` seals what Temporal stores.',
    'e2e/payload-encryption > the bytes that Temporal stores contain no input, memo, summary or details of a workflow',
  ],
  [
    "The metrics port and Temporal UI are for operators' networks.",
    'contract/compose > ports are published to this machine only, and not those of database, Temporal and metrics',
  ],
  ["Who has the process's environment has its secrets.", 'not tested: it is a limit of what is promised'],
  [
    'Rotation: [docs/operations.md](docs/operations.md#keys).',
    'ops/keys > every text opens by the new key alone after a rotation, a second run changes nothing, and the old key can go',
  ],
  [
    'The local sandbox shows one-time codes and accepts local targets.',
    'api/session > 200 with a challenge of five minutes, and with the code in the local sandbox',
    'domain/webhook-address > loopback, except in the local sandbox',
  ],
  ["It is for one developer's machine.", 'not tested: it is a limit of what is promised'],
  [
    'There is no live payment adapter: a remote runtime moves no money, whatever is configured.',
    'api/remote > 503 for value operations and disputes with evidence for every gate in every corridor',
    'api/launch-gate > 200 never open, with evidence for every gate in every corridor: there is no live adapter',
  ],
];
