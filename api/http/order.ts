/** Tasks of one key run one after the other, in the order in which they came; those of different keys do not wait. */
export type Order = <Result>(key: string, run: () => Promise<Result>) => Promise<Result>;

export function createOrder(): Order {
  /** The last task of each key; it never rejects. */
  const last = new Map<string, Promise<unknown>>();
  return async (key, run) => {
    const running = (last.get(key) ?? Promise.resolve()).then(run);
    const ended = running.catch(() => undefined);
    last.set(key, ended);
    try {
      return await running;
    } finally {
      if (last.get(key) === ended) last.delete(key);
    }
  };
}
