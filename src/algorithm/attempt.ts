import { Effect } from "effect"
import { BackendError } from "../backend/Backend.ts"
import { EnvError } from "../env/EnvError.ts"

/** Runs a synchronous chunk whose envs and programs throw typed errors; anything else that it throws is a defect. */
export const attempt = <A>(body: () => A): Effect.Effect<A, BackendError | EnvError> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(body())
    } catch (error) {
      return error instanceof EnvError || error instanceof BackendError ? Effect.fail(error) : Effect.die(error)
    }
  })
