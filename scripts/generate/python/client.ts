/** The generated files of the Python client. They are made from the document, so that no Python is needed for it. */
import type { OpenApi } from './document.ts';
import { pythonModels } from './model.ts';
import { pythonResources } from './resource.ts';

const PACKAGE = 'clients/python/src/settlement_service';

/** @param document as it is written to docs/openapi.json */
export function pythonClient(document: object): Readonly<Record<string, string>> {
  const read: OpenApi = JSON.parse(JSON.stringify(document));
  return {
    [`${PACKAGE}/models.py`]: pythonModels(read),
    [`${PACKAGE}/resources.py`]: pythonResources(read),
  };
}
