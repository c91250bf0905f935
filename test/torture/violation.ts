/** Something that the contract does not allow. `scenario` is its place in the run; undefined: the whole run. */
export type Violation = { readonly scenario?: number | undefined; readonly rule: string; readonly detail: string };

/** Reports a violation of the scenario that is being played. */
export type Report = (rule: string, detail: string) => void;
