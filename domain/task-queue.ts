/** What workers take work from. */
export const TASK_QUEUES = ['settlement', 'webhook-delivery'] as const;
export type TaskQueue = (typeof TASK_QUEUES)[number];

/** The type of the failure of an activity that a worker does not run, because it runs as many of its kind as it may. */
export const WORKER_BUSY = 'worker_busy';
