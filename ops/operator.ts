/** `operator`: who may change things. */
import { randomBytes } from 'node:crypto';
import type { Tx } from '../db/client.ts';
import { addOperator, revokeOperator } from '../db/commands/operator.ts';
import { listOperators } from '../db/queries/operator/token.ts';
import {
  AUDIT_PARAMETERS,
  changeCommand,
  type OpsCommand,
  type OpsDeps,
  operatorReader,
  showingSecret,
} from './command.ts';
import { required } from './command-line/parameter.ts';
import { command, EXIT, group } from './command-line/program.ts';
import { hashToken, requireOperator } from './operator-token.ts';
import { lineOf } from './report.ts';

const TOKEN_BYTES = 32;

const name = required('<name>', 'the operator', operatorReader);

export const operatorCommands: OpsCommand = group('operator', 'Who may change things, and by which token.', [
  command({
    name: 'list',
    description: 'Lists the operators. A token is stored nowhere.',
    takes: {},
    run: async ({ db, print, printData }: OpsDeps) => {
      const found = await listOperators(db);
      const items = found.map(({ name: operator, addedBy, addedAt, revokedBy, revokedAt }) => ({
        operator,
        status: revokedAt === null ? 'active' : 'revoked',
        added_by: addedBy,
        added_at: addedAt,
        revoked_by: revokedBy,
        revoked_at: revokedAt,
      }));
      for (const item of items) print(lineOf(item));
      if (items.length === 0) print('none');
      printData({ items });
      return EXIT.done;
    },
  }),
  changeCommand({
    name: 'add',
    description: 'Adds an operator and shows the new token, once.',
    takes: { name, ...AUDIT_PARAMETERS },
    checksOperator: true,
    run: async (deps: OpsDeps, { name: added, ...act }) => {
      const token = `op_${randomBytes(TOKEN_BYTES).toString('base64url')}`;
      const [pepper] = deps.keys.apiKeyPeppers;
      const requireAdder = (db: Tx) => requireOperator({ ...deps, db, changesOperators: true }, act.operator);
      // Nobody adds another operator without a token, so the first one would be the only one.
      const unknown = `It is unknown whether ${added} was added: see operator list. If so: OPERATOR_TOKEN=${token}`;
      await showingSecret(deps, unknown, () =>
        addOperator(deps, added, { hash: hashToken(pepper, token), requireAdder }, act),
      );
      // The token of a preview is rolled back, and would not work.
      const shown = deps.isPreview === true ? 'shown here, once' : token;
      deps.print(`${added} is an operator. OPERATOR_TOKEN=${shown}`);
      deps.printData({ operator: added, token: shown });
      return EXIT.done;
    },
  }),
  changeCommand({
    name: 'revoke',
    description: "Revokes an operator's token permanently.",
    takes: { name, ...AUDIT_PARAMETERS },
    checksOperator: true,
    run: async (deps: OpsDeps, { name: revoked, ...act }) => {
      const requireRevoker = (db: Tx) => requireOperator({ ...deps, db, changesOperators: true }, act.operator);
      await revokeOperator(deps, revoked, requireRevoker, act);
      deps.print(`${revoked} is no operator any more.`);
      deps.printData({ operator: revoked });
      return EXIT.done;
    },
  }),
]);
