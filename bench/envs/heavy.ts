import { Env, EnvPool, Space } from "effect-rl"

/** An env whose step takes tens of microseconds, as long as a step of a physics simulator. */
export const heavy = EnvPool.located(
  Env.make({
    id: "heavy",
    observationSpace: Space.box(-1, 1, [16]),
    actionSpace: Space.discrete(2),
    maxSteps: 100,
    reset: (random) => ({ at: random.uniform() }),
    observe: ({ at }) => Array.from({ length: 16 }, (_, index) => Math.sin(at + index)),
    step: ({ at }, action) => {
      let next = at + action
      for (let turn = 0; turn < 4000; turn++) next = Math.sin(next) + 1e-3
      return { state: { at: next }, reward: next, terminated: false }
    },
  }),
  import.meta.url,
)
