/**
 * The way of a settlement as a picture, drawn from the table that the code and the database enforce. From top to bottom
 * is the way to `settled`; a state that can be passed by stands to the right of the line. Beside each state are the
 * other ends to which it can lead.
 */
import { html } from 'ghtml';
import { isTerminal, SETTLEMENT_STATUSES, type SettlementStatus, TRANSITIONS } from '../../domain/settlement/state.ts';

const WIDTH = 330;
const PITCH = 58;
const TOP = 34;
const BOX = { width: 140, height: 30, left: 8, detourLeft: 58 } as const;
/** Where lines run down: past a detour, between two states of the way, and to and from a detour. */
const LINE = { past: 32, direct: 78, detour: 104 } as const;
const EXIT_LEFT = 236;
const EXIT_PITCH = 14;
const LABEL_RISE = 4;

const GOAL = 'settled' satisfies SettlementStatus;
const WAY: readonly SettlementStatus[] = SETTLEMENT_STATUSES.filter((status) => status === GOAL || !isTerminal(status));

const placeOf = (status: SettlementStatus | null): number => (status === null ? -1 : WAY.indexOf(status));
const topOf = (status: SettlementStatus | null): number => TOP + placeOf(status) * PITCH;

const STEPS = TRANSITIONS.filter(({ to }) => WAY.includes(to));
const isDetour = (status: SettlementStatus | null): boolean =>
  STEPS.some(({ from, to }) => from !== null && placeOf(from) < placeOf(status) && placeOf(status) < placeOf(to));
const exitsOf = (status: SettlementStatus): SettlementStatus[] =>
  TRANSITIONS.filter(({ from, to }) => from === status && !WAY.includes(to)).map(({ to }) => to);

/** The picture in words. */
export const SETTLEMENT_WAY = `The way of a settlement: ${WAY.join(', ')}, and the other ends to which each state can lead.`;

/** As a file the picture brings its colours; on a page it has those of the text. */
export const FILE_STYLE =
  '<style>svg{color:#17212b;background:#fff}' +
  '@media(prefers-color-scheme:dark){svg{color:#e7ecf0;background:#12181d}}</style>';

/** @param label the same in words @param isFile the picture stands alone, as a file */
export function settlementPicture({
  label,
  isFile = false,
}: {
  readonly label: string;
  readonly isFile?: boolean;
}): string {
  const height = topOf(GOAL) + BOX.height + 8;
  const svg = html`<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="${label}"
  viewBox="0 0 ${WIDTH} ${height}"
  font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13" fill="none" stroke="none">
!${isFile ? FILE_STYLE : ''}<defs>
<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
<path d="M0 0L8 4L0 8z" fill="currentColor"/></marker>
</defs>
<text x="${BOX.left}" y="14" fill="currentColor">POST /v2/settle</text>
!${STEPS.map(arrow)}
!${WAY.map(state)}
</svg>
`;
  return isFile ? svg : `<figure class="picture">${svg}</figure>\n`;
}

const path = (d: string): string =>
  `<path d="${d}" stroke="currentColor" stroke-width="1.5" marker-end="url(#tip)"/>\n`;

function arrow({ from, to }: { readonly from: SettlementStatus | null; readonly to: SettlementStatus }): string {
  const start = from === null ? 20 : topOf(from) + BOX.height;
  const isPast = placeOf(to) - placeOf(from) > 1;
  const direct = isDetour(from) || isDetour(to) ? LINE.detour : LINE.direct;
  return path(`M${isPast ? LINE.past : direct} ${start}V${topOf(to) - 1}`);
}

function state(status: SettlementStatus): string {
  const [top, left] = [topOf(status), isDetour(status) ? BOX.detourLeft : BOX.left];
  const middle = top + BOX.height / 2;
  const exits = exitsOf(status);
  const first = middle + LABEL_RISE - ((exits.length - 1) * EXIT_PITCH) / 2;
  const weight = status === GOAL ? 3 : 1.5;
  const box = `x="${left}" y="${top}" width="${BOX.width}" height="${BOX.height}" rx="6"`;
  const center = `x="${left + BOX.width / 2}" y="${middle + LABEL_RISE}" text-anchor="middle"`;
  return [
    `<rect ${box} stroke="currentColor" stroke-width="${weight}"/>`,
    `<text ${center} fill="currentColor">${status}</text>`,
    exits.length === 0 ? '' : path(`M${left + BOX.width} ${middle}H${EXIT_LEFT - 8}`).trimEnd(),
    ...exits.map(
      (exit, index) =>
        `<text x="${EXIT_LEFT}" y="${first + index * EXIT_PITCH}" font-size="12" fill="currentColor">${exit}</text>`,
    ),
    '',
  ].join('\n');
}
