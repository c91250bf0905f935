/** The parts of an OpenAPI document that the Python client is made from. */

export type Schema = {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly (string | number | boolean | null)[];
  readonly const?: string | number | boolean | null;
  readonly format?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
};

type Content = Readonly<Record<string, { readonly schema?: Schema }>>;

export type Parameter = {
  readonly $ref?: string;
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Schema;
};

export type Response = { readonly $ref?: string; readonly content?: Content; readonly headers?: object };

export type Operation = {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, Response>>;
};

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

export type OpenApi = {
  readonly paths: Readonly<Record<string, Readonly<Partial<Record<Method, Operation>>>>>;
  readonly webhooks?: Readonly<Record<string, Readonly<Partial<Record<Method, Operation>>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly parameters?: Readonly<Record<string, Parameter>>;
    readonly responses?: Readonly<Record<string, Response>>;
  };
};

export type PlacedOperation = { readonly path: string; readonly method: string; readonly operation: Operation };

/** Every operation, in the order of the document. */
export const operationsOf = ({ paths }: Pick<OpenApi, 'paths'>): PlacedOperation[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );

/** The last part of a reference: `SettlementResponse` of `#/components/schemas/SettlementResponse`. */
export const referencedName = (reference: string): string => reference.slice(reference.lastIndexOf('/') + 1);

export const jsonSchemaOf = (content: Content | undefined): Schema | undefined => content?.['application/json']?.schema;
