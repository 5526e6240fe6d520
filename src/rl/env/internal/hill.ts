/** Defines what both mountain car envs share: the physics and the rendering of a car in a valley. */
import { cos } from "../../../base/rng/Elementary.ts"
import { type ActionSpace, box } from "../Space.ts"
import { mountainCar } from "../ui/mountainCar.ts"
import { picturesOf } from "../ui/pictures.ts"
import { clip, type Motion, motionEnv } from "./motion.ts"

// The bounds of the position, the largest speed, and the strength of gravity along the slope.
const lowest = -1.2
const highest = 0.6
const fastest = 0.07
const gravity = 0.0025

/** Moves the car at offset `at` by the force `push`, writes its observation to `into`; tells if it is at the goal. */
export const drive = (states: Float64Array, at: number, push: number, goal: number, into: Float32Array): boolean => {
  const speed = clip(states[at + 1] + (push - gravity * cos(3 * states[at])), fastest)
  const position = Math.min(Math.max(states[at] + speed, lowest), highest)
  const velocity = position === lowest && speed < 0 ? 0 : speed
  states[at] = into[at] = position
  states[at + 1] = into[at + 1] = velocity
  return position >= goal && velocity >= 0
}

interface Hill<A extends ActionSpace> extends Pick<
  Motion<A>,
  "id" | "actionSpace" | "maxSteps" | "rewardThreshold" | "advance"
> {
  readonly goal: number
}

/** Makes a mountain car env, with `dynamics` (see `motionEnv`), from the rules in which the two envs differ. */
export const hillEnv = <A extends ActionSpace>({ goal, ...rules }: Hill<A>) =>
  motionEnv({
    ...rules,
    observationSpace: box([lowest, -fastest], [highest, fastest]),
    columns: ["positions", "velocities"],
    reset: (states, at, random) => {
      states[at] = random.between(-0.6, -0.4)
      states[at + 1] = 0
    },
    ...picturesOf(rules.id, mountainCar, { lowest, goal, continuous: rules.actionSpace._tag === "Box" }),
  })
