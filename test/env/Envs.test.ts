import { assert, describe, it } from "vitest"
import { builtIn, byId } from "../../src/env/Envs.ts"
import { envError } from "./errors.ts"

describe("byId", () => {
  it("finds every built-in env", () => {
    const ids = ["CartPole-v1", "Pendulum-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1"]
    assert.deepEqual(
      builtIn.map((env) => env.id),
      ids,
    )
    for (const id of ids) assert.strictEqual(byId(id).id, id)
    assert.deepEqual(
      builtIn.map((env) => env.maxSteps),
      [500, 200, 200, 999, 500],
    )
  })

  it.each([
    ["CartPole", "CartPole-v1"],
    ["cartpole-v0", "CartPole-v1"],
    ["Pendulum-v0", "Pendulum-v1"],
    ["mountaincar", "MountainCar-v0"],
    ["Acrobat-v1", "Acrobot-v1"],
  ])("suggests for %s", (id, suggestion) => {
    assert.strictEqual(envError(() => byId(id)).message, `unknown env "${id}"; did you mean "${suggestion}"?`)
  })

  it("lists what there is where nothing is near", () => {
    assert.include(
      envError(() => byId("Breakout")).message,
      'unknown env "Breakout"; known are CartPole-v1, Pendulum-v1',
    )
  })
})
