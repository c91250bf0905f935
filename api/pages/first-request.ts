/** A first request to try, as a shell command. It needs no key: it creates an organization and shows its first key. */
export const firstRequest = (apiUrl: string): string =>
  `curl -sS -X POST ${apiUrl}/v1/orgs -H 'content-type: application/json' ` +
  `-d '{"name":"Acme","country":"JM","contact_email":"dev@acme.example"}'`;
