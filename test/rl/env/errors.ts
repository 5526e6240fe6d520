import { assert } from "vitest"
import { EnvError } from "../../../src/base/EnvError.ts"

/** The `EnvError` that a call ends with. */
export const envError = (call: () => unknown): EnvError => {
  try {
    call()
  } catch (error) {
    assert.instanceOf(error, EnvError)
    assert.notInclude(error.message, "\n", "a message is one line")
    return error
  }
  return assert.fail("it didn't throw")
}
