/**
 * Humanoid-v5: a person with two legs and two arms walks along the x axis, by the torques of 17 joints. The reward is the speed, and
 * 5 while the body is upright, minus costs of the torques and of contact forces; an episode ends when it falls, or after 1,000
 * steps. Its model and its rules are those of Gymnasium's v5.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { checkOptions } from "../../../../base/EnvError.ts"
import type { Env } from "../../Env.ts"
import { withRecipe } from "../../recipe.ts"
import { box, type Box } from "../../Space.ts"
import * as Mujoco from "../Mujoco.ts"
import { mjcfOf } from "../mjcf.ts"
import { observedFields, observerOf, standingPerson } from "./person.ts"
import { flag, isBetween, noisyStart, range, type Range, speed, sumOfSquares, unbounded, weight } from "./shared.ts"

export const HumanoidOptions = Schema.Struct({
  ...observedFields,
  /** The weight of the speed in the reward. Default: 1.25. */
  forwardRewardWeight: weight,
  /** The weight of the torques' cost. Default: 0.1. */
  ctrlCostWeight: weight,
  /** The weight of the cost of contact forces. Default: 0.0000005. */
  contactCostWeight: weight,
  /** The cost of contact forces is clipped to this range. Default: [-.inf, 10]. */
  contactCostRange: range,
  /** The reward of each step in which the body is healthy. Default: 5. */
  healthyReward: weight,
  /** Whether an episode ends when the body is not healthy. Default: true. */
  terminateWhenUnhealthy: flag,
  /** The body is healthy while its height is in this range. Default: [1, 2]. */
  healthyZRange: range,
})
export type HumanoidOptions = typeof HumanoidOptions.Type

/** Returns where the centre of all masses is along the way. */
const massCentre = ({ model: { body_mass: masses }, data: { xipos } }: Mujoco.MujocoWorld): number => {
  let [sum, total] = [0, 0]
  for (let body = 0; body < masses.length; body++) {
    sum += masses[body] * xipos[3 * body]
    total += masses[body]
  }
  return sum / total
}

/** Makes the env with other options: `Humanoid.make({ contactCostWeight: 0 })`. */
export const make = (options: HumanoidOptions = {}): Env<Mujoco.MujocoState, Box, Box> => {
  checkOptions("Humanoid", options, HumanoidOptions)
  const {
    forwardRewardWeight = 1.25,
    ctrlCostWeight = 0.1,
    contactCostWeight = 5e-7,
    resetNoiseScale: scale = 0.01,
  } = options
  const { healthyReward = 5, terminateWhenUnhealthy = true } = options
  const heights: Range = options.healthyZRange ?? [1, 2]
  const [cheapest, dearest]: Range = options.contactCostRange ?? [-Infinity, 10]
  const isHealthy = ({ data }: Mujoco.MujocoWorld): boolean => isBetween(data.qpos[2], heights)
  const { size, observe } = observerOf(options)
  const env = Mujoco.env({
    id: "Humanoid-v5",
    model: Effect.sync(() => mjcfOf(standingPerson)),
    frameSkip: 5,
    observationSpace: unbounded(size),
    actionSpace: box(-0.4, 0.4, [17]),
    maxSteps: 1000,
    camera: { floor: 0, around: 0.6, above: 0.2, far: 4.2, at: [0, 0, 0.9] },
    reset: noisyStart({ scale, velocities: "uniform" }),
    measure: (world) => [massCentre(world)],
    observe,
    reward: (step) => {
      const { ctrl, cfrc_ext: forces } = step.world.data
      const contact = contactCostWeight * sumOfSquares(forces)
      return {
        survive: isHealthy(step.world) ? healthyReward : 0,
        forward: forwardRewardWeight * speed(step),
        ctrl: -ctrlCostWeight * sumOfSquares(ctrl),
        contact: -Math.min(Math.max(contact, cheapest), dearest),
      }
    },
    terminated: ({ world }) => terminateWhenUnhealthy && !isHealthy(world),
  })
  return withRecipe(env, "Humanoid", options)
}

/** The env with its default options: `Batch.open(Humanoid.env, 16)`. */
export const env = make()
