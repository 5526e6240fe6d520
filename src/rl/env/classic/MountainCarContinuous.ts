/**
 * MountainCarContinuous-v0: the car of MountainCar with a force from −1 to 1. Reaching the flag at position 0.45 is
 * worth 100 and ends the episode; each step costs a tenth of the squared force. An episode has at most 999 steps.
 *
 * A state is [position, velocity]; the observation is the state. The dynamics are Gymnasium's, which keeps the state in
 * float32 from step to step.
 */
import type { Env } from "../Env.ts"
import { drive, hillEnv } from "../internal/hill.ts"
import { clip, type Moved } from "../internal/motion.ts"
import { box, type Box } from "../Space.ts"

const goal = 0.45
const power = 0.0015

const motion = hillEnv({
  id: "MountainCarContinuous-v0",
  goal,
  actionSpace: box(-1, 1),
  maxSteps: 999,
  rewardThreshold: 90,
  advance: (states, { observations, rewards, terminated }, actions, waiting) => {
    for (let index = 0; index < waiting.length; index++) {
      if (waiting[index] !== 0) continue
      const at = 2 * index
      const action = actions[index]
      const isThere = drive(states, at, clip(action, 1) * power, goal, observations)
      states[at] = Math.fround(states[at])
      states[at + 1] = Math.fround(states[at + 1])
      rewards[index] = (isThere ? 100 : 0) - action * action * 0.1
      terminated[index] = isThere ? 1 : 0
    }
  },
})

/** Computes one step of the car, without a time limit. */
export const dynamics: (state: ArrayLike<number>, action: ArrayLike<number>) => Moved = motion.dynamics

/** The env, which has no options: `Batch.make(MountainCarContinuous.env, 16)`. */
export const env: Env<ReadonlyArray<number>, Box, Box> = motion.env
