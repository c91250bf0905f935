import { expect, test, vi } from 'vitest';
import { createCrash } from '../../process/crash.ts';

test('nothing is called without CRASH_AT', () => {
  expect(createCrash(undefined)).toBeUndefined();
});

test('the process is killed at the nth pass of its point, and at no other point', () => {
  const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
  const crash = createCrash({ point: 'settlement.accept:after_commit', nth: 2 });
  crash?.('settlement.accept:before_commit');
  crash?.('settlement.accept:after_commit');
  crash?.('settlement.accept:before_commit');
  expect(kill).not.toHaveBeenCalled();
  crash?.('settlement.accept:after_commit');
  expect(kill.mock.calls).toEqual([[process.pid, 'SIGKILL']]);
  kill.mockRestore();
});
