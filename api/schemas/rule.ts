/**
 * Rules across fields of a form. Zod judges none of them once a field has a fault, and an answer lists all faults
 * (contract §2). So each rule is also a form of its own, of the fields that it needs.
 */
import { z } from 'zod';

type Judge<Fields extends z.ZodObject> = (values: z.output<Fields>, context: z.core.$RefinementCtx) => void;

const FORMS = new WeakMap<object, z.ZodType>();

/** Makes a rule about these fields: a check for a form that has them, among others. */
export function rule<Fields extends z.ZodObject>(
  fields: Fields,
  judge: Judge<Fields>,
): z.core.$ZodCheck<z.output<Fields>> {
  const check = z.superRefine(judge);
  FORMS.set(check, fields.superRefine(judge));
  return check;
}

/** A field of a rule that asks only which fields are given. Any form is read: a fault of it hides no other fault. */
export const inAnyForm = () => z.unknown().optional();

/** Null is the same as absent. */
export const isGiven = (value: unknown): boolean => value !== undefined && value !== null;

/** As `rule`, for one that the form leaves to the handler: it is judged only if the request is refused anyway. */
export function laterRule<Fields extends z.ZodObject>(
  fields: Fields,
  judge: Judge<Fields>,
): z.core.$ZodCheck<z.output<Fields>> {
  const check = z.superRefine<z.output<Fields>>(() => undefined);
  FORMS.set(check, fields.superRefine(judge));
  return check;
}

/** The rules of a form, as forms. */
export function rulesOf(schema: z.ZodType): readonly z.ZodType[] {
  const form = schema instanceof z.ZodPipe ? schema.def.in : schema;
  const checks = form instanceof z.ZodObject ? (form.def.checks ?? []) : [];
  return checks.flatMap((check) => FORMS.get(check) ?? []);
}
