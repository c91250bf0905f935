/** What workers take work from. */
export const TASK_QUEUES = ['settlement', 'webhook-delivery'] as const;
export type TaskQueue = (typeof TASK_QUEUES)[number];
