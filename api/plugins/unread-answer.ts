/**
 * Ends connections whose callers do not read their answers: without a limit, each keeps memory and a connection. There
 * are two limits: the time of one answer, and the bytes of all that wait. Beyond the second, the oldest is ended first,
 * because an answer that is read takes only a moment.
 */
import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import { whenOver } from '../http/request-end.ts';

declare module 'fastify' {
  interface FastifyReply {
    /** The body is one buffer that all answers share, so that it costs no memory of its own. */
    hasSharedBody: boolean;
  }
}

type Waiting = { readonly bytes: number; readonly end: () => void };

export type AnswerLimits = { readonly answerTimeoutMs: number; readonly waitingBytesMax: number };

export const unreadAnswer = fp(async (app: FastifyInstance, { answerTimeoutMs, waitingBytesMax }: AnswerLimits) => {
  const waiting = new Set<Waiting>();
  let waitingBytes = 0;
  app.decorateReply('hasSharedBody', false);
  app.addHook('onSend', (request, reply, payload, done) => {
    const size = typeof payload === 'string' || Buffer.isBuffer(payload) ? Buffer.byteLength(payload) : 0;
    const answer: Waiting = { bytes: reply.hasSharedBody ? 0 : size, end: () => request.raw.socket.destroy() };
    const timer = setTimeout(answer.end, answerTimeoutMs);
    timer.unref();
    waiting.add(answer);
    waitingBytes += answer.bytes;
    const forget = (): void => {
      clearTimeout(timer);
      if (waiting.delete(answer)) waitingBytes -= answer.bytes;
    };
    // Everything was handed to the system, or the caller went away before, perhaps before there was an answer.
    whenOver(request.raw, reply.raw, forget);
    for (const oldest of waiting) {
      if (waitingBytes <= waitingBytesMax || oldest === answer) break;
      // Its end would free no memory.
      if (oldest.bytes === 0) continue;
      waiting.delete(oldest);
      waitingBytes -= oldest.bytes;
      oldest.end();
    }
    done(null, payload);
  });
});
