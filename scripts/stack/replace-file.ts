/** Replaces a small file in one step: who reads it sees the old one or the new one as a whole, after a crash too. */
import { renameSync, writeFileSync } from 'node:fs';

/** Only its owner can read the file. */
export function replaceFile(file: string, content: string): void {
  const temporary = `${file}.${process.pid}`;
  writeFileSync(temporary, content, { mode: 0o600, flush: true });
  renameSync(temporary, file);
}
