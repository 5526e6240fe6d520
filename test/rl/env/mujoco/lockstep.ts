/** Compares the steps of a body with those of Gymnasium, each from Gymnasium's own state. */
import { assert } from "vitest"
import type { Env } from "../../../../src/rl/env/Env.ts"
import * as Mujoco from "../../../../src/rl/env/mujoco/Mujoco.ts"
import type { Box } from "../../../../src/rl/env/Space.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"

export type Numbers = ReadonlyArray<number>

/** A step of Gymnasium's env from a state. `warm` is from where MuJoCo's solver began. */
export interface Step {
  readonly qpos: Numbers
  readonly qvel: Numbers
  readonly warm: Numbers
  readonly action: Numbers
  readonly obs: Numbers
  readonly reward: number
  readonly terminated: boolean
  readonly truncated: boolean
  /** The terms of the reward, among others. */
  readonly info?: Readonly<Record<string, number>>
}

export interface Trace {
  readonly firstObservation: Numbers
  readonly steps: ReadonlyArray<Step>
}

/** Steps are not random. */
const noRandom = stream(0)

/** The names that Gymnasium has for terms of rewards, where they are not `reward_` and ours. */
const otherNames: Readonly<Record<string, ReadonlyArray<string>>> = {
  up: ["reward_linup"],
  ctrl: ["reward_ctrl", "reward_quadctrl"],
  distance: ["reward_dist", "distance_penalty"],
  velocity: ["velocity_penalty"],
}

const near = (found: ArrayLike<number>, expected: Numbers, what: string, most = 1e-9): void => {
  assert.strictEqual(found.length, expected.length, what)
  const wrong = expected.findIndex((value, at) => !(Math.abs(found[at] - value) <= most))
  assert.strictEqual(wrong, -1, `${what}[${wrong}]: ${found[wrong]}, not ${expected[wrong]}`)
}

interface FollowOptions {
  /**
   * How many steps may differ by up to 1e-3. On a body with many contacts, MuJoCo's solver may stop an iteration earlier or later
   * for a difference in the last digit.
   */
  readonly mostApart?: number
}

/** Checks all steps of a trace. Returns the names of the terms that Gymnasium names, too. */
export const follow = (
  env: Env<Mujoco.MujocoState, Box, Box>,
  { firstObservation, steps }: Trace,
  { mostApart = 0 }: FollowOptions = {},
): Set<string> => {
  const compared = new Set<string>()
  const { qpos, qvel } = steps[0]
  near(env.observe(Mujoco.stateAt(env, { qpos, qvel })), firstObservation, "first observation")
  // What a reward compares was measured at the end of the step before, unless an episode began.
  let measured: Numbers | undefined
  let apart = 0
  for (const [at, step] of steps.entries()) {
    const state = Mujoco.stateAt(env, { qpos: step.qpos, qvel: step.qvel, warmstart: step.warm })
    const moved = env.step(measured === undefined ? state : { ...state, measured }, step.action, noRandom)
    const seen = env.observe(moved.state)
    const isApart = apart < mostApart && step.obs.some((value, index) => !(Math.abs(seen[index] - value) <= 1e-9))
    if (isApart) apart++
    const most = isApart ? 1e-3 : 1e-9
    near(seen, step.obs, `step ${at}: observation`, most)
    near([moved.reward], [step.reward], `step ${at}: reward`, most)
    assert.strictEqual(moved.terminated, step.terminated, `step ${at}: terminated`)
    for (const [term, value] of Object.entries(moved.state.terms)) {
      const name = (otherNames[term] ?? [`reward_${term}`]).find((one) => step.info?.[one] !== undefined)
      if (name === undefined) continue
      near([value], [step.info?.[name] ?? NaN], `step ${at}: ${name}`, most)
      compared.add(term)
    }
    measured = step.terminated || step.truncated ? undefined : moved.state.measured
  }
  return compared
}
