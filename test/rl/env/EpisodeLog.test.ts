import { assert, describe, it } from "vitest"
import * as Batch from "../../../src/rl/env/Batch.ts"
import type { AutoReset } from "../../../src/rl/env/BatchEnv.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import * as EpisodeLog from "../../../src/rl/env/EpisodeLog.ts"
import { box, discrete } from "../../../src/rl/env/Space.ts"

/** Ends when told to (action 1), or after 3 steps. */
const env = Env.make({
  id: "stop",
  observationSpace: box(0, 1),
  actionSpace: discrete(2),
  maxSteps: 3,
  reset: () => 0,
  observe: () => [0],
  step: (count, action) => ({ state: count + 1, reward: 10 ** count, terminated: action === 1 }),
})

const recorded = (autoReset: AutoReset, actions: ReadonlyArray<ReadonlyArray<number>>) => {
  const envs = EpisodeLog.record(Batch.make(env, 2, { autoReset }))
  envs.reset(1)
  for (const row of actions) envs.step(Int32Array.from(row))
  return envs
}

const rows = ({ episodes: log }: EpisodeLog.Recorded) =>
  Array.from({ length: log.length }, (_, at) => [
    log.steps[at],
    log.envs[at],
    log.episodes[at],
    log.returns[at],
    log.lengths[at],
    log.terminated[at],
    log.truncated[at],
  ])

describe("the episode log (step, env, episode, return, length, terminated, truncated)", () => {
  const actions = [
    [0, 1],
    [0, 0],
    [0, 0],
    [1, 1],
    [0, 0],
  ]

  it("has each episode once, in the order of the ends", () => {
    assert.deepEqual(rows(recorded("same-step", actions)), [
      [1, 1, 0, 1, 1, 1, 0],
      [3, 0, 0, 111, 3, 0, 1],
      [4, 0, 1, 1, 1, 1, 0],
      [4, 1, 1, 111, 3, 1, 1],
    ])
  })

  it("doesn't count the step that only resets", () => {
    assert.deepEqual(rows(recorded("next-step", actions)), [
      [1, 1, 0, 1, 1, 1, 0],
      [3, 0, 0, 111, 3, 0, 1],
      [4, 1, 1, 11, 2, 1, 0],
    ])
  })

  it("numbers episodes like their random streams, also abandoned ones", () => {
    const envs = recorded("disabled", [[0, 1]])
    envs.restart(Uint8Array.of(1, 1))
    envs.step(Int32Array.of(1, 1))
    assert.deepEqual(rows(envs).slice(1), [
      [2, 0, 1, 1, 1, 1, 0],
      [2, 1, 1, 1, 1, 1, 0],
    ])
  })

  it("grows, and is empty after a clear", () => {
    const envs = recorded(
      "same-step",
      Array.from({ length: 100 }, () => [1, 1]),
    )
    assert.strictEqual(envs.episodes.length, 200)
    assert.deepEqual(rows(envs)[199], [100, 1, 99, 1, 1, 1, 0])
    envs.episodes.clear()
    assert.strictEqual(envs.episodes.length, 0)
    envs.step(Int32Array.of(1, 0))
    assert.deepEqual(rows(envs), [[101, 0, 100, 1, 1, 1, 0]])
  })

  it("continues after a restore", () => {
    const envs = recorded("same-step", [
      [0, 0],
      [0, 0],
    ])
    const saved = envs.snapshot()
    const other = EpisodeLog.record(Batch.make(env, 2))
    other.restore(saved)
    for (const each of [envs, other]) each.step(Int32Array.of(0, 1))
    assert.deepEqual(rows(other), rows(envs))
    assert.deepEqual(rows(other)[0], [3, 0, 0, 111, 3, 0, 1])
  })
})
