/** Places for what is under way at the same time, counted by key: an organization, or an address. */
export type Places = {
  /** @returns false when the key has none left */
  enter(key: string): boolean;
  leave(key: string): void;
};

export function createPlaces(maxOfKey: number): Places {
  const taken = new Map<string, number>();
  return {
    enter(key) {
      const own = taken.get(key) ?? 0;
      if (own >= maxOfKey) return false;
      taken.set(key, own + 1);
      return true;
    },
    leave(key) {
      const own = (taken.get(key) ?? 1) - 1;
      if (own === 0) taken.delete(key);
      else taken.set(key, own);
    },
  };
}
