/** A QR code as rows of modules, to be drawn by whoever knows how: as a path on a page, as squares in print. */
import { create } from 'qrcode';

/** Light modules that must surround the code, so that a reader finds it. */
export const QUIET_ZONE = 4;

export type QrCode = {
  /** Modules along each side. */
  readonly size: number;
  /** Column and row of each dark module. */
  readonly dark: readonly (readonly [number, number])[];
};

export function qrCode(text: string): QrCode {
  const { modules } = create(text, { errorCorrectionLevel: 'M' });
  const places = Array.from(
    { length: modules.size ** 2 },
    (_, index) => [index % modules.size, Math.floor(index / modules.size)] as const,
  );
  return { size: modules.size, dark: places.filter(([column, row]) => modules.get(row, column) !== 0) };
}
