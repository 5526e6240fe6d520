import { Effect, Result } from "effect"
import * as Native from "../../../src/tensor/backend/native-node.ts"

/** The parts without which the tests of the backend `native` are skipped; anything else that is wrong is a failure. */
const optional =
  /there is no C compiler|the package koffi, which calls compiled programs, is not installed|it runs on Linux/

/** Tells whether this machine has a C compiler and the package `koffi`. Throws if the backend fails for another reason. */
export const hasNative = async (): Promise<boolean> => {
  const made = await Effect.runPromise(Effect.result(Native.make()))
  if (Result.isSuccess(made)) return true
  if (optional.test(made.failure.missing)) return false
  throw made.failure
}
