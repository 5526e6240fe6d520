import type { LmError } from "../../lm/LmError.ts"

/** No other episode would do better, so there is no use in asking: a wrong key, a budget that is spent. */
export const isFinal = (error: { readonly _tag: string }): error is LmError =>
  error._tag === "LmError" && "reason" in error && (error.reason === "unauthorised" || error.reason === "budget")
