import { invalid } from "../EnvError.ts"

/** The functions of an env that steps elsewhere. They throw: only a batch of it, which `Batch.open` opens, can step. */
export const elsewhere = (id: string): { readonly [Name in "reset" | "observe" | "step"]: () => never } => {
  const refuse = (): never => {
    throw invalid(id, "it steps elsewhere, so it has no state here; open a batch of it by Batch.open")
  }
  return { reset: refuse, observe: refuse, step: refuse }
}
