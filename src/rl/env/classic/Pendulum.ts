/**
 * Pendulum-v1: swing a pendulum up and hold it there with a torque of at most 2 N m. The reward is minus a cost of the
 * angle from upright, the speed and the torque; an episode has 200 steps.
 *
 * A state is [angle, angular velocity]: the angle is 0 when upright, and may exceed a full turn. The observation is
 * [cos, sin, velocity]. The dynamics are Gymnasium's.
 */
import * as G from "../../../tensor/graph/ops.ts"
import { cos, sin } from "../../../base/rng/Elementary.ts"
import type { Env } from "../Env.ts"
import type { EnvGraph } from "../EnvGraph.ts"
import { clip, type Motion, motionEnv, type Moved } from "../internal/motion.ts"
import { box, type Box } from "../Space.ts"
import { pendulum } from "../ui/pendulum.ts"
import { picturesOf } from "../ui/pictures.ts"

const fastest = 8
const strongest = 2
/** The duration of a step in seconds. */
const tau = 0.05
const gravity = 10
const turn = 2 * Math.PI

/** Returns the same angle within [−π, π), by adding or subtracting full turns. */
const wrapped = (angle: number): number => {
  const raised = angle + Math.PI
  // The usual case: at most one turn must be subtracted, which is exact. `%` is many times slower.
  if (raised >= 0 && raised < 2 * turn) return (raised < turn ? raised : raised - turn) - Math.PI
  const rest = raised % turn
  return (rest < 0 ? rest + turn : rest) - Math.PI
}

const observe: NonNullable<Motion["observe"]> = (states, at, into, to) => {
  // Store the sine behind the state (see `derived` below), because the next step needs it.
  states[at + 2] = sin(states[at])
  into[to] = cos(states[at])
  into[to + 1] = states[at + 2]
  into[to + 2] = states[at + 1]
}

const advance: Motion["advance"] = (states, { observations, rewards }, actions, waiting) => {
  for (let index = 0; index < waiting.length; index++) {
    if (waiting[index] !== 0) continue
    const at = 3 * index
    const torque = clip(actions[index], strongest)
    const angle = states[at]
    const velocity = states[at + 1]
    const sine = states[at + 2]
    const away = wrapped(angle)
    const cost = away * away + 0.1 * (velocity * velocity) + 0.001 * (torque * torque)
    const next = clip(velocity + (((3 * gravity) / 2) * sine + 3 * torque) * tau, fastest)
    states[at] = angle + next * tau
    states[at + 1] = next
    rewards[index] = -cost
    observe(states, at, observations, at)
  }
}

const graph: Omit<EnvGraph, "start" | "stateSize"> = {
  shortest: Infinity,
  observe: (state) => {
    const [angle, velocity] = G.split(state, [1, 1], 1)
    return G.concat([G.cos(angle), G.sin(angle), velocity], 1)
  },
  /**
   * Computes the same step as `advance`, in single precision. Full turns are removed from the angle, since a large
   * float32 angle has fewer digits for its fraction.
   */
  step: (state, action) => {
    const [angle, velocity] = G.split(state, [1, 1], 1)
    const torque = G.clip(action, -strongest, strongest)
    const turns = G.floor(G.div(G.add(angle, Math.PI), turn))
    const away = G.sub(angle, G.mul(turns, turn))
    const effort = G.add(G.mul(G.square(velocity), 0.1), G.mul(G.square(torque), 0.001))
    const cost = G.add(G.square(away), effort)
    const change = G.mul(G.add(G.mul(G.sin(angle), (3 * gravity) / 2), G.mul(torque, 3)), tau)
    const next = G.clip(G.add(velocity, change), -fastest, fastest)
    const rows = [angle.shape[0]]
    return {
      state: G.concat([G.add(away, G.mul(next, tau)), next], 1),
      reward: G.reshape(G.neg(cost), rows),
      terminated: G.constant(new Uint8Array(rows[0]), rows),
    }
  },
}

const motion = motionEnv({
  id: "Pendulum-v1",
  observationSpace: box([-1, -1, -fastest], [1, 1, fastest]),
  actionSpace: box(-strongest, strongest),
  maxSteps: 200,
  columns: ["angles", "velocities"],
  derived: ["sines"],
  reset: (states, at, random) => {
    states[at] = random.between(-Math.PI, Math.PI)
    states[at + 1] = random.between(-1, 1)
  },
  advance,
  observe,
  graph,
  ...picturesOf("Pendulum-v1", pendulum, { strongest }),
})

/** Computes one step of the pendulum, without a time limit. */
export const dynamics: (state: ArrayLike<number>, action: ArrayLike<number>) => Moved = motion.dynamics

/** The env, which has no options: `Batch.make(Pendulum.env, 64)`. */
export const env: Env<ReadonlyArray<number>, Box, Box> = motion.env
