import { Effect } from "effect"
import * as AsyncEnv from "../../../src/rl/env/AsyncEnv.ts"
import type { Env } from "../../../src/rl/env/Env.ts"
import type { ActionSpace, Space } from "../../../src/rl/env/Space.ts"

/** The same env, behind Effects that wait for the event loop. */
export const away = <A extends ActionSpace, O extends Space>(
  { id, observationSpace, actionSpace, ...env }: Env<unknown, A, O>,
  later: Effect.Effect<void> = Effect.yieldNow,
) =>
  AsyncEnv.make<A, O>({
    id: `${id} elsewhere`,
    observationSpace,
    actionSpace,
    hasActionMask: env.actionMask !== undefined,
    ...(env.maxSteps === undefined ? {} : { maxSteps: env.maxSteps }),
    open: () =>
      Effect.sync(() => {
        let state: unknown
        return {
          reset: (random) =>
            Effect.andThen(
              later,
              Effect.sync(() => env.observe((state = env.reset(random)))),
            ),
          actionMask: Effect.sync(() => env.actionMask?.(state) ?? []),
          step: (action, random) =>
            Effect.andThen(
              later,
              Effect.sync(() => {
                const { state: next, ...outcome } = env.step(state, action, random)
                return { ...outcome, observation: env.observe((state = next)) }
              }),
            ),
        }
      }),
  })
