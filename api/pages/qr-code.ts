/** A QR code as a list of its dark modules. The HTML draws them as a path, the PDF as squares. */
import { encode } from 'uqr';

/** The width of the light border that scanners need, in modules. */
export const QUIET_ZONE = 4;

export type QrCode = {
  /** The number of modules on each side. */
  readonly size: number;
  /** Column and row of each dark module. */
  readonly dark: readonly (readonly [number, number])[];
};

export function qrCode(text: string): QrCode {
  const { size, data } = encode(text, { ecc: 'M', border: 0 });
  const dark = data.flatMap((modules, row) =>
    modules.flatMap((isDark, column) => (isDark ? [[column, row] as const] : [])),
  );
  return { size, dark };
}
