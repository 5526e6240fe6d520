import { assert, describe, it } from "vitest"
import { builtIn, byId } from "../../src/env/Envs.ts"
import { envError } from "./errors.ts"

describe("byId", () => {
  it("finds every built-in env by a unique id", () => {
    const ids = builtIn.map((env) => env.id)
    assert.includeMembers(ids, ["CartPole-v1", "Pendulum-v1", "MinAtar/Breakout-v1", "KeyDoor-10x10-3rooms-v0"])
    assert.strictEqual(new Set(ids).size, ids.length)
    for (const env of builtIn) assert.strictEqual(byId(env.id), env)
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

  it("lists all envs if no id is similar", () => {
    assert.include(
      envError(() => byId("Chess")).message,
      'unknown env "Chess"; expected one of CartPole-v1, Pendulum-v1',
    )
  })
})
