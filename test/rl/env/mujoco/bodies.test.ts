import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import type { Env } from "../../../../src/rl/env/Env.ts"
import { bodies } from "../../../../src/rl/env/Envs.ts"
import * as Mujoco from "../../../../src/rl/env/mujoco/Mujoco.ts"
import type { Box } from "../../../../src/rl/env/Space.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import { prepared } from "../prepared.ts"

type Numbers = ReadonlyArray<number>

/** What Gymnasium compiled: arrays by MuJoCo's names, and the settings of the simulation. */
interface Compiled {
  readonly opt: object
  readonly [array: string]: object
}

/** A step of Gymnasium's env from a state. `warm` is from where MuJoCo's solver began. */
interface Step {
  readonly qpos: Numbers
  readonly qvel: Numbers
  readonly warm: Numbers
  readonly action: Numbers
  readonly obs: Numbers
  readonly reward: number
  readonly terminated: boolean
  readonly truncated: boolean
}

const traceOf = (id: string) => {
  const text = readFileSync(new URL(`../data/mujoco/${id}.jsonl`, import.meta.url), "utf8")
  const [first, ...steps] = text.trimEnd().split("\n")
  const { model, firstObservation }: { readonly model: Compiled; readonly firstObservation: Numbers } =
    JSON.parse(first)
  return { model, firstObservation, steps: steps.map((line): Step => JSON.parse(line)) }
}

const isBody = (env: Env): env is Env<Mujoco.MujocoState, Box, Box> => env.actionSpace._tag === "Box"

/** Checks that an object of MuJoCo's has the same values, arrays or numbers, by the same names. */
const equal = (found: object, expected: object): void => {
  for (const [name, value] of Object.entries(expected)) {
    const own: unknown = Reflect.get(found, name)
    assert.deepEqual(ArrayBuffer.isView(own) ? Object.values(own) : own, value, name)
  }
}

/** Steps are not random. */
const noRandom = stream(0)

const near = (found: ArrayLike<number>, expected: Numbers, what: string): void => {
  assert.strictEqual(found.length, expected.length, what)
  const wrong = expected.findIndex((value, at) => !(Math.abs(found[at] - value) <= 1e-9))
  assert.strictEqual(wrong, -1, `${what}[${wrong}]: ${found[wrong]}, not ${expected[wrong]}`)
}

prepared(bodies)

describe.each(bodies.filter(isBody).map((env) => [env.id, env] as const))("%s", (id, env) => {
  const { model, firstObservation, steps } = traceOf(id)

  it("is compiled to the arrays of Gymnasium's model", () => {
    const { qpos, qvel } = steps[0]
    const compiled: object = Mujoco.worldAt(env, Mujoco.stateAt(env, { qpos, qvel })).model
    const { opt, ...arrays } = model
    equal(compiled, arrays)
    equal(Reflect.get(compiled, "opt"), opt)
  })

  it("observes, rewards and ends as Gymnasium's does, step by step", () => {
    const { qpos, qvel } = steps[0]
    near(env.observe(Mujoco.stateAt(env, { qpos, qvel })), firstObservation, "first observation")
    // What a reward compares was measured at the end of the step before, unless an episode began.
    let measured: Numbers | undefined
    for (const [at, step] of steps.entries()) {
      const state = Mujoco.stateAt(env, { qpos: step.qpos, qvel: step.qvel, warmstart: step.warm })
      const moved = env.step(measured === undefined ? state : { ...state, measured }, step.action, noRandom)
      near(env.observe(moved.state), step.obs, `step ${at}: observation`)
      near([moved.reward], [step.reward], `step ${at}: reward`)
      assert.strictEqual(moved.terminated, step.terminated, `step ${at}: terminated`)
      measured = step.terminated || step.truncated ? undefined : moved.state.measured
    }
  })
})
