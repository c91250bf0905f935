/**
 * Where a clone keeps its data: under its own `.local/`, so two clones share nothing. The paths are derived from the
 * path of this file and do not depend on the working directory.
 */
import path from 'node:path';

export const repositoryRoot = path.resolve(import.meta.dirname, '../..');

export const localDirectory = path.join(repositoryRoot, '.local');
