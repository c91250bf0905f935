/**
 * A first request to try, as a shell command. It needs no key: it creates an organization and shows its first key.
 *
 * @param gap before the body: a page ends the line there, the terminal does not
 */
export const firstRequest = (apiUrl: string, gap = ' '): string =>
  `curl -sS -X POST ${apiUrl}/v1/orgs -H 'content-type: application/json'${gap}` +
  `-d '{"name":"Acme","country":"JM","contact_email":"dev@acme.example"}'`;
