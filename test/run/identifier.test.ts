import { assert, describe, it } from "vitest"
import {
  dateOf,
  derivedName,
  fromFlatPath,
  fromPath,
  isSameName,
  timeOf,
  toFlatPath,
  toPath,
} from "../../src/run/identifier.ts"

const time = "2026-01-31_12-00-00"

describe("the path of a run", () => {
  it.each([
    [{ time, commit: "0123abc", name: "tune", population: {}, seed: 1 }, `${time}/0123abc_tune/-/0001`],
    [
      {
        time,
        commit: "f972979",
        name: "zoo",
        population: { environment: "pendulum-v1", algorithm: "sac" },
        seed: 12345,
      },
      `${time}/f972979_zoo_environment_algorithm/pendulum-v1_sac/12345`,
    ],
    [
      {
        time,
        commit: "f972979",
        name: "sweep",
        population: { environment: "CartPole-v1", algorithm: "ppo", learning_rate: "0.001", hidden: "[64,64]" },
        seed: 2,
      },
      `${time}/f972979_sweep_environment_algorithm_learning-rate_hidden/CartPole-v1_ppo_0.001_=5B64,64=5D/0002`,
    ],
    [
      { time, commit: "no-hash", name: "a_b", population: { env_id: "ALE/Pong-v5" }, seed: -3 },
      `${time}/no-hash_a=5Fb_env-id/ALE=2FPong-v5/-0003`,
    ],
    [
      { time, commit: "no-hash", name: "a-b", population: { "env-id": "x_y", env_id: "x-y" }, seed: 1 },
      `${time}/no-hash_a-b_env=2Did_env-id/x=5Fy_x-y/0001`,
    ],
    [
      { time, commit: "no-hash", name: "..", population: { x: "", y: "-" }, seed: 0 },
      `${time}/no-hash_=2E=2E_x_y/=_-/0000`,
    ],
    [{ time, commit: "no-hash", name: "=5F", population: { x: "-" }, seed: 0 }, `${time}/no-hash_=3D5F_x/=2D/0000`],
  ])("of %j is %s, and back", (identifier, path) => {
    assert.strictEqual(toPath(identifier), path)
    assert.deepEqual(fromPath(path), identifier)
    assert.deepEqual(fromPath(`/some/where/${path}/`), identifier)
  })

  it("is read with escapes in a variable's name", () => {
    const path = `${time}/0123abc_tune_num=5Fenvs/8/0001`
    assert.deepEqual(fromPath(path)?.population, { num_envs: "8" })
  })

  it.each([
    ["too few folders", "0123abc_tune/-/0001"],
    ["no time", "yesterday/0123abc_tune/-/0001"],
    ["no seed", `${time}/0123abc_tune/-/latest`],
    ["no name", `${time}/0123abc/-/0001`],
    ["fewer values than variables", `${time}/0123abc_tune_a_b/x/0001`],
    ["values where nothing varies", `${time}/0123abc_tune/x/0001`],
  ])("is not one with %s", (_, path) => assert.isUndefined(fromPath(path)))
})

describe("the flat path of a run", () => {
  it("holds the time", () => {
    assert.strictEqual(toFlatPath({ time }), "20260131_120000")
    assert.deepEqual(fromFlatPath("results/20260131_120000"), { time })
  })

  it.each(["results", "2026-01-31_12-00-00", "x20260131_120000", "20260131_120000/checkpoints"])("is not %s", (path) =>
    assert.isUndefined(fromFlatPath(path)),
  )
})

it("a derived name has dashes, and is the same as what it is derived of", () => {
  assert.strictEqual(derivedName("history_agent"), "history-agent")
  assert.isTrue(isSameName("history_agent", "history-agent"))
  assert.isFalse(isSameName("history_agent", "historyagent"))
})

it("the time of an identifier is in UTC, to the second", () => {
  assert.strictEqual(timeOf(new Date("2026-01-31T23:59:59.999-01:00")), "2026-02-01_00-59-59")
})

it("the time of an identifier is a date again", () => {
  assert.strictEqual(dateOf("2026-01-31_12-30-59")?.toISOString(), "2026-01-31T12:30:59.000Z")
  for (const text of ["2026-13-31_12-30-59", "yesterday", "20260131_123059"]) assert.isUndefined(dateOf(text))
})
