/** Something that the contract does not allow. `life` is the place of the life in the run; undefined: the whole run. */
export type Violation = { readonly life?: number | undefined; readonly rule: string; readonly detail: string };

/** Reports a violation of the life that is lived. */
export type Report = (rule: string, detail: string) => void;
