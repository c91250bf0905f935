/** A QR code as a list of its dark modules. The HTML draws them as a path, the PDF as squares. */
import { create } from 'qrcode';

/** The width of the light border that scanners need, in modules. */
export const QUIET_ZONE = 4;

export type QrCode = {
  /** The number of modules on each side. */
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
