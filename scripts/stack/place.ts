/**
 * Where the embedded stack keeps things. Everything lies under the clone's own `.local/`, so two clones never meet;
 * the paths come from this file's place, so the working directory does not matter.
 */
import path from 'node:path';

export const repositoryRoot = path.resolve(import.meta.dirname, '../..');

export const localDirectory = path.join(repositoryRoot, '.local');
