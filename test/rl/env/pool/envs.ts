import * as CartPole from "../../../../src/rl/env/classic/CartPole.ts"
import * as Env from "../../../../src/rl/env/Env.ts"
import { located } from "../../../../src/rl/env/EnvPool.ts"
import { box, discrete } from "../../../../src/rl/env/Space.ts"
import * as Wrapper from "../../../../src/rl/env/Wrapper.ts"
import { courier } from "../courier.ts"

/** Envs that worker threads import from here. */

/** A state of text and numbers, randomness in every step, both endings. */
export const drunkard = located(
  Env.make({
    id: "drunkard",
    observationSpace: box(-100, 100, [2]),
    actionSpace: discrete(3),
    maxSteps: 12,
    reset: (random) => ({ at: random.between(-1, 1), trail: "·" }),
    observe: ({ at, trail }) => [at, trail.length],
    step: ({ at, trail }, action, random) => {
      const next = at + (action - 1) * 0.1 + 0.3 * random.normal()
      return { state: { at: next, trail: `${trail}·` }, reward: next, terminated: Math.abs(next) > 1.5 }
    },
  }),
  import.meta.url,
)

/** Its batch has arrays of its own around those of the inner one. */
export const blindPole = located(
  {
    ...Wrapper.scaleReward(Wrapper.keepObservations(Wrapper.timeLimit(CartPole.env, 9), [0, 2]), 0.5),
    id: "blind-pole",
  },
  import.meta.url,
)

/** Observations with parts, and action masks. */
export const masked = located({ ...courier(4), id: "masked" }, import.meta.url)

/** Its simulation diverges in the third step of about each second episode. */
export const diverging = located(
  Env.make({
    id: "diverging",
    observationSpace: box(0, 1, [1]),
    actionSpace: discrete(2),
    maxSteps: 4,
    reset: (random) => ({ steps: 0, isEven: random.uniform() < 0.5 }),
    observe: () => [0],
    step: (state) => {
      const steps = state.steps + 1
      const diverged = state.isEven && steps === 3
      return { state: { ...state, steps }, reward: 1, terminated: false, truncated: diverged, diverged }
    },
  }),
  import.meta.url,
)

/** Goes wrong in the way that its fourth step says. */
const breaking = (id: string, goWrong: () => void) =>
  located(
    Env.make({
      id,
      observationSpace: box(0, 100),
      actionSpace: discrete(2),
      reset: () => ({ step: 0 }),
      observe: ({ step }) => [step],
      step: ({ step }, action) => {
        if (step === 3 && action === 1) goWrong()
        return { state: { step: step + 1 }, reward: 1, terminated: false }
      },
    }),
    import.meta.url,
  )

export const thrower = breaking("thrower", function theSensorIsOff() {
  throw new RangeError("the sensor is off")
})
export const leaver = breaking("leaver", () => process.exit(3))
export const looper = breaking("looper", () => {
  for (;;);
})

/** A state that can't be saved after the action 1. */
export const hoarder = located(
  Env.make({
    id: "hoarder",
    observationSpace: box(0, 100),
    actionSpace: discrete(2),
    reset: (): { readonly step: number; readonly kept?: () => void } => ({ step: 0 }),
    observe: ({ step }) => [step],
    step: ({ step }, action) => ({
      state: { step: step + 1, ...(action === 1 ? { kept: () => {} } : {}) },
      reward: 1,
      terminated: false,
    }),
  }),
  import.meta.url,
)
