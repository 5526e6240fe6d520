import * as Env from "../../../src/rl/env/Env.ts"
import { box, multiBinary, multiDiscrete, tuple } from "../../../src/rl/env/Space.ts"

/** A lock whose two wheels must be turned to the numbers that are shown, the first of which cannot be 1. */
export const lock = Env.make({
  id: "lock",
  observationSpace: multiDiscrete([4, 2]),
  actionSpace: multiDiscrete([4, 2]),
  maxSteps: 10,
  reset: (random) => [random.integer(4), random.integer(2)],
  observe: (wanted) => wanted,
  actionMask: () => [1, 0, 1, 1, 1, 1],
  step: (wanted, action, random) => ({
    state: [random.integer(4), random.integer(2)],
    reward: wanted.filter((number, wheel) => number === action[wheel]).length,
    terminated: false,
  }),
})

/** Lamps that must be switched like the ones that are shown. */
export const lamps = Env.make({
  id: "lamps",
  observationSpace: tuple(multiBinary(3), box(0, 1)),
  actionSpace: multiBinary(3),
  maxSteps: 10,
  reset: (random) => [random.integer(2), random.integer(2), random.integer(2)],
  observe: (shown) => [shown, [0.5]] as const,
  step: (shown, action, random) => ({
    state: shown.map(() => random.integer(2)),
    reward: shown.filter((lamp, at) => lamp === action[at]).length,
    terminated: false,
  }),
})
