import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import type { Env } from "../../../../src/rl/env/Env.ts"
import { bodies } from "../../../../src/rl/env/Envs.ts"
import * as Mujoco from "../../../../src/rl/env/mujoco/Mujoco.ts"
import type { Box } from "../../../../src/rl/env/Space.ts"
import { prepared } from "../prepared.ts"
import { follow, type Numbers, type Step } from "./lockstep.ts"

/** What Gymnasium compiled: arrays by MuJoCo's names, and the settings of the simulation. */
interface Compiled {
  readonly opt: object
  readonly [array: string]: object
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
    follow(env, { firstObservation, steps })
  })
})
