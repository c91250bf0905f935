/** Limits how many tasks of one key run at once. The others wait in order. Tasks of different keys do not wait. */
export type Order = <Result>(key: string, run: () => Promise<Result>) => Promise<Result>;

export function createOrder(atOnce: number): Order {
  const keys = new Map<string, { running: number; readonly waiting: (() => void)[] }>();
  return async (key, run) => {
    const own = keys.get(key) ?? { running: 0, waiting: [] };
    keys.set(key, own);
    if (own.running < atOnce) own.running += 1;
    else await new Promise<void>((resolve) => own.waiting.push(resolve));
    try {
      return await run();
    } finally {
      const next = own.waiting.shift();
      if (next) next();
      else own.running -= 1;
      if (own.running === 0) keys.delete(key);
    }
  };
}
