/** The parts of each item of docs/security.md, with the tests that show them, as in security-claims.ts. */
export const ITEM_CLAIMS: readonly (readonly [part: string, ...shownBy: string[]])[] = [
  [
    "API1: every query takes the organization's id",
    "attack/tenancy > 404 for another tenant's id, as for an unknown id, headers included, and nothing is written",
  ],
  [
    'API1: foreign and unknown ids get one 404',
    "attack/tenancy > 404 for another tenant's id, as for an unknown id, headers included, and nothing is written",
  ],
  [
    'API2: keys with a check digest and 256 random bits, keyed hashes, one answer for every invalid credential',
    'api/authentication > 401 with the same body for every invalid key, and nothing is written',
    'attack/data-at-rest > no personal data and no secret in any table, history, log line or webhook body',
  ],
  [
    'API2: exactly one header',
    'api/authentication > 401 credential_missing for a key in any other place, and nothing is written',
    'api/authentication > 401 credential_ambiguous for two keys, even if both are the same valid key',
  ],
  ['API2: keys limited to addresses', 'api/api-key-address > %s works from there and from nowhere else'],
  [
    'API2: no key exceeds its creator, and what it made ends with it',
    'attack/key-escalation > makes no key with %s',
    'attack/key-escalation > ends what the key, its predecessors and its descendants made, and nothing else',
  ],
  [
    'API2: failures count against who failed, and a valid key beside them is accepted',
    'api/client-address > 429 after a few with %s, and the database is not asked',
    'attack/failure-count > is accepted beside a caller of the same address with %s',
  ],
  [
    'API2: budgets for one-time codes',
    'api/otp-budget > 429 once its codes of the hour are used, to however many contacts',
  ],
  [
    'API3: closed request bodies',
    'attack/mass-assignment > 422 extra_forbidden for every field that the body does not have, and nothing is written',
  ],
  ['API3: answers have a schema of their own', 'contract/openapi > has closed request bodies and open answers'],
  ['API3: no secret after creation', 'api/webhook > 201 with the secret; no read, list or table shows it again'],
  [
    'API4: budgets by organization and address, also for bytes answered',
    'api/edge > 429 per organization with Retry-After and the IETF headers once the quota is used, before the body is read',
    'api/rate-limit > one unit more for each 64 KiB of its answer, and its answer says so',
  ],
  [
    "API4: limits by tier, or of an organization's own",
    'ops/limit > gives the limits of a tier from the next request on, and names the way back',
    "ops/limit > a limit of an organization's own replaces that of its tier alone",
  ],
  [
    'API4: turns between organizations',
    'db/turns > tenants that wait are served in turn',
    "db/tenant > a tenant's single statement waits for one of another tenant's burst",
  ],
  [
    'API4: places for requests under way and connections',
    'attack/places > 429 at once beyond those of an organization, which are given back when they end',
    'attack/places > beyond those of an address are closed, until another one ends',
  ],
  ['API4: 64 KiB bodies', 'attack/wire > 413 for a body over the limit, by its length or in chunks, before its end'],
  ['API4: counts before contents', 'attack/amplification > one fault, and no look at the members, for'],
  [
    'API4: at most 100 faults',
    'attack/amplification > thousands of unknown fields get the first hundred faults, in less than the body had',
  ],
  [
    'API4: a cap of the provider bodies in flight',
    'attack/provider-body > is ended when newer ones need its room, so that held bodies refuse nobody',
  ],
  [
    'API4: one readiness probe a second',
    'attack/provider-body > is asked of PostgreSQL once a second at most, however often it is read',
  ],
  [
    'API4: time limits for requests, answers, statements',
    'attack/slow-client > hundreds of slow connections end with 408, and other callers are answered meanwhile',
    'attack/unread-answer > ends after its time, also when it is read slowly',
    'db/tenant > a statement gives up a lock after a quarter of a second',
  ],
  [
    'API4: a limit of waiting reads',
    'api/prefer-wait > one organization cannot use the waiting reads of all, and beyond its own no Preference-Applied is sent',
  ],
  [
    'API4: a limit of what waits for Temporal',
    'attack/outbox-limit > every operation is a command, but reads, estimates, sign-up, sign-in and provider events',
    'attack/outbox-limit > 202 again once the rows are dispatched',
  ],
  [
    'API5: a route without a declared scope does not start',
    'contract/routes > declares the credential and the scope of the interface',
  ],
  [
    'API5: every scope is tried on every operation',
    'api/authentication > 403 scope_insufficient with the required scope for every lesser scope, and nothing is written',
  ],
  [
    'API6: sign-up and codes have budgets',
    'api/edge > 429 for the third sign-up from one address, and not for another address',
    'attack/places > 429 for one sign-up more than %s has in a day, from whatever address of it',
    'api/otp-budget > too many wrong codes leave new challenges one try',
  ],
  [
    'API6: quotas of what an organization holds',
    'api/quota > for exactly what is over the quota when many are created at once',
  ],
  [
    'API6: 100 keys and 20 subscriptions an organization',
    'api/api-key > 429 beyond the active keys that an organization may have, also for requests at once',
    'api/webhook > 429 for the twenty-first subscription, even if two are created at once',
  ],
  [
    'API6: launch gates',
    'api/remote > 503 for value operations and disputes with evidence for every gate in every corridor',
  ],
  [
    "API7: subscribers' URLs are checked at creation and at each connection, on the address that is dialled",
    'api/webhook > 422 on url for a private address, even if local targets are allowed',
    'activities/guarded-http > no request over a connection that reached %s instead of the address that was checked',
  ],
  ['API7: no redirects', 'activities/guarded-http > %i is a failure, and the redirect is not followed'],
  [
    'API7: a bound of requests in flight to one host',
    'activities/destination > a host has at most so many requests in flight, whichever path or port they go to',
  ],
  [
    'API8: one schema for the environment, every fault at once, no default secret',
    'config > every invalid variable at once, without the values',
    'contract/compose > every secret is required, and none has a value in the file',
  ],
  [
    'API8: headers on every answer',
    'api/remote > every answer of %s has the same security headers, and a remote one also requires TLS',
  ],
  [
    'API8: one secret has one use',
    'config > one value for three providers, a password and two kinds of key in %s, with a fault for each and no value',
  ],
  [
    'API9: the OpenAPI document is generated from the routes and compared with `operations.csv`',
    'contract/openapi > describes exactly the registered routes',
    'contract/routes > has only the operations of the interface and the service routes',
  ],
  [
    "API10: providers' events: signature first, closed list of types, applicant and settlement compared",
    'api/idverify-event > 401 for every invalid one, before anything is parsed or written',
    'api/idverify-event > is stored and decides nothing if it names another applicant',
  ],
  ['API10: the identity provider over TLS only', 'config > %s with an identity provider without TLS'],
  [
    'V1: parameters in statements, escaped pages, no shell',
    'api/page > escapes the texts of a certificate',
    'api/page > escapes the texts of an entry',
  ],
  [
    'V1: strict JSON: no duplicate names, no `__proto__`, bounded depth',
    'api/validation > 422 json_invalid with the position, for %s',
    'attack/mass-assignment > 422 for __proto__ in every spelling, and nothing is written',
    'api/validation > 422 by the schema, not by depth, at the deepest nesting that is allowed',
  ],
  [
    'V2: zod at the edge, names screened as people see them, transitions in a trigger, idempotency keys bound permanently, budgets',
    'attack/look-alike > finds the word %s',
    'db/settlement-transition > has the same transitions in the database as in the code',
    'api/creation > 201 again with the same bytes for the same key, and one object',
  ],
  [
    "V3: a page's policy allows only its own files",
    'api/page > has no inline script, style or handler, and loads only from this server',
  ],
  [
    'V3: no form but the search, no cookie, no key in a browser',
    'api/page > asks for no key: its only field is the search',
  ],
  [
    "V3: only named origins, compared as a whole, call consumers' operations",
    'api/consumer-origin > gets no permission from %s',
    'api/consumer-origin > gets none when it sends the allowed origin together with its own',
  ],
  [
    'V4: exact content types, one Host, no `Transfer-Encoding` with a length, no method override',
    'attack/wire > 415 for two content types, even if both are JSON',
    'attack/wire > 400 for two Host headers, or none',
    'attack/wire > 400 for ambiguous framing, and nothing is accepted',
  ],
  ['V5: no uploads', 'attack/wire > 413 for a body over the limit, by its length or in chunks, before its end'],
  [
    'V5: served files come from memory, by digest',
    'api/page > is cached without end under its digest, and compressed for clients that accept it',
  ],
  [
    'V6: keys and one-time codes: 6 digits by `crypto`, 5 minutes, one use, keyed hash',
    'api/session > 200 with a challenge of five minutes, and with the code in the local sandbox',
    'api/session > 401 with the same body for every invalid code: unknown, wrong, expired, used, tried too often',
  ],
  ['V6: no passwords', 'not tested: there is no operation for them'],
  [
    'V7: opaque tokens, 256 bits, 12 h, ended at once by logout',
    'api/session > ends after exactly twelve hours',
    'api/session > ends at once by logout, and no other session does',
  ],
  [
    'V8: scope and organization on every operation, checked again under the lock of a change',
    'api/authentication > 403 scope_insufficient with the required scope for every lesser scope, and nothing is written',
    'api/api-key > 401 for a key that is revoked while its request waits, and no key is created',
  ],
  [
    'V8: operators suspend an organization, or end a key with what it made',
    'attack/suspension > a suspension holds from the next request on, for a repeated request too, and ends when it is resumed',
    'ops/api-key > a revoked key and what it made get 401 at once, and nothing else of the organization does',
  ],
  [
    'V9: none are accepted. Certificates are signed with Ed25519',
    'api/certificate > 200 with the stored bytes, their digest and a signature that jose verifies',
  ],
  [
    'V9: only that algorithm verifies',
    'api/certificate > a certificate signed by another key under our key id is not valid',
  ],
  ['V10: out of scope: the service is neither client nor server', 'not tested: out of scope'],
  [
    "V11: AES-256-GCM with the key's id and a binding",
    'ops/keys > leaves a text that no configured key opens, reports it, and exits with 1',
    'db/service-key > a key under the name of another one is refused, and a new name is not',
  ],
  ['V11: HMAC-SHA-256', 'api/pepper > a used key moves to the new pepper and is valid without the old one'],
  ['V11: a key of each recipient', 'contract/security > what SECURITY.md says is sealed or not is so in the tables'],
  [
    'V11: rotation without a stop',
    'ops/keys > every text opens by the new key alone after a rotation, a second run changes nothing, and the old key can go',
  ],
  ['V12: TLS ends at the proxy (out of scope here)', 'not tested: the proxy is not part of the service'],
  [
    'V12: HSTS in remote runtimes',
    'api/remote > every answer of %s has the same security headers, and a remote one also requires TLS',
  ],
  [
    'V12: outbound only by TLS outside the sandbox, to PostgreSQL and Temporal as well, but for hosts that are named',
    'config > a database that is reached without verified TLS: %s',
    'config > a Temporal that is reached without TLS: %s',
  ],
  [
    'V13: secrets from the environment only, never printed',
    'config > every invalid variable at once, without the values',
  ],
  [
    "V13: the service's database role owns nothing",
    'db/privilege > does not start with %s, and no statement runs with it',
  ],
  [
    'V14: `Cache-Control: no-store`',
    'api/remote > every answer of %s has the same security headers, and a remote one also requires TLS',
  ],
  [
    'V14: personal data sealed, but not `contact_email`, `rejection_reason`, references and metadata',
    'contract/security > what SECURITY.md says is sealed or not is so in the tables',
  ],
  [
    'V14: erased by two operators',
    'ops/recipient > a second operator erases: reads show no personal data, and what was paid stays readable',
  ],
  [
    'V14: exported by one, with an audit entry',
    'ops/recipient > prints all that is held, in full and without secrets, and who had it is in the audit',
  ],
  [
    'V14: a scan of tables, logs, histories and events',
    'attack/data-at-rest > no personal data and no secret in any table, history, log line or webhook body',
    'attack/secrets > no secret and no personal data in any log line or refusal',
  ],
  [
    'V15: pinned dependencies with accepted licences only (`npm sbom` lists them)',
    'contract/licence > every package of the product has an accepted licence',
  ],
  [
    'V15: install scripts denied but for the development database',
    'contract/install-script > package.json decides about every install script in the lock, and about no other package',
  ],
  ['V15: typed without `any`, layers enforced', 'contract/dependency > imports only what the table allows'],
  [
    'V16: one line a request with organization, key id and network',
    'api/access-log > a leaked key can be traced: the line has its id and the network, and never the address',
  ],
  [
    'V16: errors without messages',
    'attack/secrets > 500 when the database fails, with the error in the log but no secret and no personal data',
  ],
  ['V16: no stack to callers', 'api/validation > the cause of an internal error'],
  ["V16: operators' changes in a chain of hashes", 'attack/audit-chain > %s is noticed'],
  ['V17: out of scope: not used', 'not tested: out of scope'],
];
