import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { TrackedRun } from "../../../src/command/trackers/TrackedRun.ts"
import { wandbFolder } from "../../../src/command/trackers/wandb.ts"
import { runIn } from "./wandbLog.ts"

const tracked: TrackedRun = {
  experiment: "car/race",
  name: "2026-01-31_12-00-00 8 7",
  state: "finished",
  startedAtMillis: Date.UTC(2026, 0, 31, 12, 0, 0, 250),
  endedAtMillis: Date.UTC(2026, 0, 31, 12, 1, 30, 250),
  settings: { env: "CartPole-v1", num_envs: 8, algorithm: { name: "ppo", hidden: [64, 32], gamma: 0.99 } },
  commit: "0123abc",
  digest: "d1g357",
  events: [
    { step: 128, wallSeconds: 1769860801.5, metrics: { "losses/entropy": 0.5, "charts/SPS": 1000 } },
    { step: 256, wallSeconds: 1769860802.5, metrics: { "losses/entropy": 1e-7, "losses/value_loss": Infinity } },
    { step: 256, wallSeconds: 1769860803.5, metrics: { "validation/score": NaN } },
  ],
  files: { "config.yaml": Uint8Array.of(1, 2), "policy.onnx": Uint8Array.of(3) },
}

const logIn = (files: Readonly<Record<string, Uint8Array>>) => {
  const [name, bytes] = Object.entries(files).find(([path]) => path.endsWith(".wandb")) ?? ["", new Uint8Array(0)]
  return { name, bytes, ...runIn(bytes) }
}

describe("a run's folder for Weights & Biases", () => {
  it.effect("has the run, a row for each step, the last values, the files, and how it ended", () =>
    Effect.gen(function* () {
      const { name, files } = yield* wandbFolder(tracked)
      const log = logIn(files)
      const id = log.run[1] ?? ""
      assert.match(id, /^[0-9a-f]{16}$/)
      assert.strictEqual(name, `offline-run-20260131_120000-${id}`)
      assert.deepEqual(Object.keys(files), [`run-${id}.wandb`, "files/run/config.yaml", "files/run/policy.onnx"])
      assert.deepEqual(files["files/run/policy.onnx"], tracked.files["policy.onnx"])
      assert.deepEqual(log.kinds, [17, 2, 2, 3, 6, 18, 20])
      assert.deepEqual(log.numbers, [1, 2, 3, 4, 5, 6, 7])
      assert.deepEqual(log.run, {
        1: id,
        2: undefined,
        3: "car_race",
        6: undefined,
        7: "train",
        8: tracked.name,
        9: undefined,
      })
      assert.deepEqual(log.tags, ["CartPole-v1", "ppo"])
      assert.deepEqual(log.config, {
        env: `"CartPole-v1"`,
        num_envs: "8",
        algorithm: `{"name":"ppo","hidden":[64,32],"gamma":0.99}`,
      })
      assert.deepEqual(log.start, { 1: [1769860800], 2: [250_000_000] })
      assert.strictEqual(log.commit, "0123abc")
      const second = { _step: "256", _timestamp: "1769860803.5", _runtime: "3.25" }
      assert.deepEqual(log.history, [
        {
          step: 128,
          items: {
            "losses/entropy": "0.5",
            "charts/SPS": "1000",
            _step: "128",
            _timestamp: "1769860801.5",
            _runtime: "1.25",
          },
        },
        {
          step: 256,
          items: { "losses/entropy": "1e-7", "losses/value_loss": "Infinity", "validation/score": "NaN", ...second },
        },
      ])
      assert.deepEqual(log.summary, {
        "losses/entropy": "1e-7",
        "charts/SPS": "1000",
        "losses/value_loss": "Infinity",
        "validation/score": "NaN",
        ...second,
        "effect_rl/digest": `"d1g357"`,
        "_wandb.runtime": "90",
      })
      assert.deepEqual(
        log.files.map((file) => [String(file[1][0]), file[2]]),
        [
          ["run/config.yaml", [1]],
          ["run/policy.onnx", [1]],
        ],
      )
      assert.deepEqual(log.exit, { 1: [0], 2: [90] })
      assert.deepEqual((yield* wandbFolder(tracked)).files, files)
    }),
  )

  it.effect("writes the rows in the order of steps, though a clock or a merged log has another one", () =>
    Effect.gen(function* () {
      const events = [300, 100, 200].map((step) => ({ step, wallSeconds: 0, metrics: { a: step } }))
      const log = logIn((yield* wandbFolder({ ...tracked, events })).files)
      assert.deepEqual(
        log.history.map(({ step, items }) => [step, items.a, items._runtime]),
        [100, 200, 300].map((step) => [step, String(step), "0"]),
      )
      assert.strictEqual(log.summary.a, "300")
    }),
  )

  it.effect("says by the exit code how the run ended", () =>
    Effect.gen(function* () {
      for (const [state, code] of [
        ["failed", 1],
        ["stopped", 255],
      ] as const) {
        assert.deepEqual(logIn((yield* wandbFolder({ ...tracked, state })).files).exit[1], [code])
      }
    }),
  )

  it.effect("takes labels, and gives another run another id", () =>
    Effect.gen(function* () {
      const labels = {
        entity: "ada",
        project: "cars",
        id: "my_run",
        name: "first",
        group: "g",
        notes: "é",
        tags: ["a"],
      }
      const folder = yield* wandbFolder(tracked, labels)
      assert.strictEqual(folder.name, "offline-run-20260131_120000-my_run")
      const log = logIn(folder.files)
      assert.deepEqual(log.run, { 1: "my_run", 2: "ada", 3: "cars", 6: "g", 7: "train", 8: "first", 9: "é" })
      assert.deepEqual(log.tags, ["a"])
      const id = logIn((yield* wandbFolder(tracked)).files).run[1]
      for (const other of [
        { ...tracked, name: "2026-01-31_12-00-00 8 8" },
        { ...tracked, startedAtMillis: tracked.startedAtMillis + 1 },
      ]) {
        assert.notStrictEqual(logIn((yield* wandbFolder(other)).files).run[1], id)
      }
    }),
  )

  it.effect("refuses labels that W&B does not take", () =>
    Effect.gen(function* () {
      for (const [labels, message] of [
        [{ project: "a/b" }, `project "a/b": expected 1 to 128 characters, none of them / \\ # ? % or :`],
        [{ project: "" }, `project "": expected 1 to 128 characters, none of them / \\ # ? % or :`],
        [{ id: "../x" }, `run id "../x": expected 1 to 128 letters, digits, underscores, dots and dashes`],
        [
          { id: "x".repeat(129) },
          `run id "${"x".repeat(129)}": expected 1 to 128 letters, digits, underscores, dots and dashes`,
        ],
        [{ tags: ["a", ""] }, `tag "": expected 1 to 64 characters`],
      ] as const) {
        const error = yield* Effect.flip(wandbFolder(tracked, labels))
        assert.deepEqual([error._tag, error.message], ["CommandError", message])
      }
    }),
  )
})
