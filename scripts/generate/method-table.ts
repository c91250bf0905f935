/** The table of methods in each client's README, from the document. */
import { table } from './document.ts';
import { type OpenApi, operationsOf } from './python/document.ts';
import { placeOf } from './python/operation.ts';

type Language = 'python' | 'typescript';

/** Methods of several requests, or of another form of an answer, that are written by hand; in each language. */
const WRITTEN: Readonly<Record<string, readonly { names: Partial<Record<Language, string>>; what: string }[]>> = {
  getSettlement: [{ names: { python: 'wait', typescript: 'wait' }, what: 'Wait until it has ended' }],
  getTransfer: [{ names: { python: 'wait', typescript: 'wait' }, what: 'Wait until it has ended' }],
  getCertificate: [
    { names: { python: 'download', typescript: 'download' }, what: 'Its bytes and their signature' },
    { names: { python: 'download_signed', typescript: 'downloadSigned' }, what: 'One file with its signature' },
    { names: { python: 'pdf' }, what: 'A printable file' },
  ],
  getTransferCertificate: [
    {
      names: { python: 'certificate', typescript: 'certificate' },
      what: "The certificate's bytes and their signature",
    },
    { names: { python: 'signed_certificate', typescript: 'signedCertificate' }, what: 'One file with its signature' },
  ],
};

/** Where the TypeScript client has another name than the Python client, or no method. */
const IN_TYPESCRIPT: Readonly<Record<string, string | undefined>> = {
  createCaribbeanSettlement: 'create',
  listCaribbeanSettlements: undefined,
  getCaribbeanSettlement: undefined,
  getCertificate: undefined,
};

const ATTRIBUTES: Readonly<Record<string, string>> = {
  ConsumerAccount: '',
  ConsumerRecipients: 'recipients',
  ConsumerBanklink: 'banklink',
};

const camelCase = (name: string): string => name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
const snakeCase = (name: string): string => name.replaceAll(/(?<=.)[A-Z]/g, '_$&').toLowerCase();

/** @returns the rows of the partner's client, then those of the consumer's */
export function methodTables(document: OpenApi, language: Language): string {
  const rows = operationsOf(document).flatMap(({ path, method, operation }) => {
    const { operationId, summary, parameters = [] } = operation;
    const [group, name] = placeOf(operationId) ?? [operationId === 'getTransferCertificate' ? 'Transfers' : ''];
    const attribute = ATTRIBUTES[group] ?? snakeCase(group);
    const isKeyed = parameters.some(({ name: header }) => header === 'Idempotency-Key');
    const generated = language === 'typescript' && operationId in IN_TYPESCRIPT ? IN_TYPESCRIPT[operationId] : name;
    const methods = [
      ...(generated === undefined ? [] : [{ called: generated, what: summary, isKeyed }]),
      ...(WRITTEN[operationId] ?? []).flatMap(({ names, what }) => {
        const called = names[language];
        return called === undefined ? [] : [{ called, what, isKeyed: false }];
      }),
    ];
    return methods.map((one) => {
      const full = [attribute, one.called].filter(Boolean).join('.');
      const shown = language === 'typescript' ? camelCase(full) : full;
      return {
        isConsumer: path.startsWith('/consumer/'),
        cells: [`\`${shown}\``, `${method} ${path}`, one.what, one.isKeyed ? 'key' : ''],
      };
    });
  });
  const tableOf = (title: string, isConsumer: boolean): string =>
    table(
      [title, 'operation', 'what it does', ''],
      rows.filter((row) => row.isConsumer === isConsumer).map(({ cells }) => cells),
    );
  return `${tableOf("a partner's client", false)}\n\n${tableOf("a consumer's client", true)}`;
}
