/**
 * Where a clone keeps its data: everything lies under its own `.local/`, so two clones never meet. The paths are made
 * from this file's place and do not depend on the working directory.
 */
import path from 'node:path';

export const repositoryRoot = path.resolve(import.meta.dirname, '..');

export const localDirectory = path.join(repositoryRoot, '.local');
