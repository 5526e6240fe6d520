import type { Env } from "../Env.ts"
import { invalid } from "../../../base/EnvError.ts"
import { type ActionSpace, choicesOf, display as displayedSpace } from "../Space.ts"

/**
 * Returns the functions of an env that runs elsewhere. They throw, since only a batch, which `Batch.open` opens, can
 * step such an env. There is an `actionMask` if the env has masks, so that rows have room for them.
 */
export const elsewhere = (
  { id, actionSpace }: { readonly id: string; readonly actionSpace: ActionSpace },
  hasActionMask: boolean,
): Pick<Env, "actionMask"> & { readonly [Name in "reset" | "observe" | "step"]: () => never } => {
  const refuse = (): never => {
    throw invalid(id, "it steps elsewhere, so it has no state here; open a batch of it by Batch.open")
  }
  if (hasActionMask && choicesOf(actionSpace) === undefined) {
    const found = `found ${displayedSpace(actionSpace)}`
    throw invalid(id, `action masks need choices as actions, Space.discrete or multiDiscrete (…), ${found}`)
  }
  return { reset: refuse, observe: refuse, step: refuse, ...(hasActionMask && { actionMask: refuse }) }
}
