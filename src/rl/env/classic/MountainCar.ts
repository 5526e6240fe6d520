/**
 * MountainCar-v0: a car too weak for the hill must swing back and forth to get to the flag at position 0.5, which ends
 * the episode. Actions: push left (0), don't push (1), push right (2). The reward is −1 per step; an episode has at
 * most 200 steps.
 *
 * A state is [position, velocity]; the observation is the state. The dynamics are Gymnasium's (Moore 1990).
 */
import type { Env } from "../Env.ts"
import { drive, hillEnv } from "../internal/hill.ts"
import type { Moved } from "../internal/motion.ts"
import { type Box, discrete, type Discrete } from "../Space.ts"

const goal = 0.5
const force = 0.001

const motion = hillEnv({
  id: "MountainCar-v0",
  goal,
  actionSpace: discrete(3),
  maxSteps: 200,
  rewardThreshold: -110,
  advance: (states, { observations, rewards, terminated }, actions, waiting) => {
    for (let index = 0; index < waiting.length; index++) {
      // An env that waits for a reset does not move.
      if (waiting[index] !== 0) continue
      const reachedGoal = drive(states, 2 * index, (actions[index] - 1) * force, goal, observations)
      rewards[index] = -1
      terminated[index] = reachedGoal ? 1 : 0
    }
  },
})

/** Computes one step of the car, without a time limit. */
export const dynamics: (state: ArrayLike<number>, action: number) => Moved = motion.dynamics

/** The env, which has no options: `Batch.make(MountainCar.env, 16)`. */
export const env: Env<ReadonlyArray<number>, Discrete, Box> = motion.env
