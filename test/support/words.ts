/** The words of a text, for a long list on few lines. No word has a blank. */
export const words = (text: string): string[] => text.trim().split(/\s+/);
