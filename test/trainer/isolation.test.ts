import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer, Result } from "effect"
import { assert, beforeAll, describe, it } from "vitest"
import { stringify } from "yaml"
import { Backend, BackendError, compileOne } from "../../src/tensor/backend/Backend.ts"
import * as Wasm from "../../src/tensor/backend/wasm.ts"
import type { Plain } from "../../src/base/config/Config.ts"
import type { ProgramSpec } from "../../src/tensor/graph/Program.ts"
import * as Layout from "../../src/trainer/Layout.ts"
import { configOf, resultsFolder, runConfig, runFiles, trained } from "./smallTraining.ts"

const names = ["a", "b", "c", "d", "e", "f", "g", "h"]
const seedOf = (name: string): number => names.indexOf(name) + 1
const eight = (more: Plain = {}): Readonly<Record<string, Plain>> =>
  Object.fromEntries(names.map((name) => [name, runConfig(seedOf(name), more)]))

type Weights = ReturnType<ReturnType<typeof runFiles>["weightsAt"]>

/** Returns the largest difference between two adapters, relative to the largest number of the second. */
const differenceOf = (one: Weights, other: Weights): number => {
  let [most, largest] = [0, 0]
  assert.deepStrictEqual(Object.keys(one), Object.keys(other))
  for (const [name, { data }] of Object.entries(other))
    for (const [at, number] of data.entries()) {
      most = Math.max(most, Math.abs(Number(one[name].data[at]) - Number(number)))
      largest = Math.max(largest, Math.abs(Number(number)))
    }
  return most / largest
}

/** Trains runs of eight with some config of the trainer. */
const adaptersOf = (runs: Readonly<Record<string, Plain>>, trainer: Plain = {}) =>
  Effect.gen(function* () {
    const { runDir } = yield* trained(configOf(runs, { trainer }), { resultsDir: yield* resultsFolder })
    return Object.fromEntries(Object.keys(runs).map((name) => [name, runFiles(runDir, name).weightsAt(3)]))
  })

/** Returns a backend that cannot compile the programs of one name. */
const without = (name: string): Backend["Service"] => {
  const wasm = Wasm.make()
  const compileAll: Backend["Service"]["compileAll"] = (specs, options) =>
    Object.values<ProgramSpec>(specs).some((spec) => spec.name === name)
      ? Effect.fail(new BackendError({ backend: "wasm", program: name, message: `no room for ${name}` }))
      : wasm.compileAll(specs, options)
  return { ...wasm, compileAll, compile: compileOne(compileAll) }
}

describe("runs that are trained together", () => {
  it("end with the same bits as alone, if a micro-batch holds one run", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const together = yield* adaptersOf(eight())
        for (const name of names) {
          const alone = yield* adaptersOf({ [name]: eight()[name] })
          assert.deepStrictEqual(together[name], alone[name], name)
        }
        // The runs have different tasks, so equal adapters would mean that nothing was trained.
        assert.isAbove(differenceOf(together["a"], together["h"]), 0.01)
      }).pipe(Effect.scoped),
    ),
  )

  it("end with the same numbers as alone to 1e-6, if a micro-batch holds many runs", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        // Numbers that differ in the last bits could draw other tokens, so all steps imitate.
        const runs = eight({ supervised: { steps: 3, lr: 0.02 }, optimiser: { type: "sgd", lr: 0.02 } })
        const together = yield* adaptersOf(runs, { mixing: "many-runs" })
        for (const name of names) {
          const alone = yield* adaptersOf({ [name]: runs[name] })
          assert.isAtMost(differenceOf(together[name], alone[name]), 1e-6, name)
        }
      }).pipe(Effect.scoped),
    ),
  )
})

describe("a run that breaks", () => {
  const healthy = { a: runConfig(1), c: runConfig(3) }
  let withoutCulprit: Readonly<Record<string, Weights>> = {}
  beforeAll(async () => {
    withoutCulprit = await Effect.runPromise(Effect.scoped(adaptersOf(healthy)))
  })

  interface Culprit {
    /** Its config in that of the trainer. */
    readonly config?: Plain
    /** Its config in a folder that somebody adds. */
    readonly folder?: Plain
    /** Called after each update of a run. */
    readonly act?: (runDir: string, step: number) => void
    readonly backend?: Layer.Layer<Backend>
  }

  /** Trains two healthy runs and a culprit, and checks that the healthy ones are the same as without it. */
  const besides = Effect.fnUntraced(function* ({ config, folder, act = () => {}, backend = Wasm.layer }: Culprit) {
    const resultsDir = yield* resultsFolder
    const warnings: Array<string> = []
    let runDir = ""
    const outcome = yield* Effect.result(
      trained(configOf({ ...healthy, ...(config === undefined ? {} : { b: config }) }), {
        resultsDir,
        backend,
        onOpen: (directory) => {
          runDir = directory
          if (folder === undefined) return
          mkdirSync(join(runDir, "run_b", Layout.configs), { recursive: true })
          writeFileSync(join(runDir, "run_b", Layout.configFiles.yaml), stringify(folder))
        },
        onEvent: (event) => {
          if (event._tag === "Warning") warnings.push(event.message)
          if (event._tag === "UpdateApplied") act(runDir, event.step)
        },
      }),
    )
    for (const name of ["a", "c"] as const)
      assert.deepStrictEqual(runFiles(runDir, name).weightsAt(3), withoutCulprit[name], name)
    // The results are written in any case. The command fails if a run was not trained to the end.
    assert.isTrue(existsSync(join(runDir, "return.json")))
    const failure = Result.isFailure(outcome) ? outcome.failure.message : undefined
    return { failure, warnings, files: runFiles(runDir, "b") }
  })

  const absurd = (steps: number) => ({
    supervised: { steps, lr: 1e30 },
    optimiser: { type: "sgd", lr: 1e30, max_norm: 0 },
  })
  for (const { when, config, reason } of [
    { when: "in the middle", config: absurd(3), reason: /run_b.*expected finite numbers/ },
    { when: "in its last step", config: { ...absurd(2), max_steps: 2 }, reason: /run_b.*expected finite numbers/ },
    { when: "when it samples", config: absurd(1), reason: /its orchestrator failed: .*step-1-0/ },
  ])
    it(`changes no other if its numbers are not finite ${when}`, { tags: when === "in the middle" ? [] : "slow" }, () =>
      Effect.runPromise(
        Effect.gen(function* () {
          const { failure, files, warnings } = yield* besides({ config: runConfig(2, config) })
          assert.match(files.evicted() ?? "", reason)
          assert.match(failure ?? "", /^run_b was evicted: .*; the other runs are finished, in /)
          assert.lengthOf(
            warnings.filter((one) => one.includes("run_b was evicted")),
            1,
          )
        }).pipe(Effect.scoped),
      ),
    )

  it("changes no other if its folder is deleted", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { failure, files, warnings } = yield* besides({
          config: runConfig(2, { max_steps: 50 }),
          act: (runDir, step) => {
            if (step >= 5) rmSync(join(runDir, "run_b"), { recursive: true, force: true })
          },
        })
        assert.isUndefined(failure)
        assert.isUndefined(files.textOf("configs/orch.yaml"))
        assert.isUndefined(files.textOf("control/token"))
        assert.include(warnings, "run_b: its folder was deleted or replaced, so it is not trained any more")
      }).pipe(Effect.scoped),
    ),
  )

  it("changes no other if its objective cannot be compiled", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { files } = yield* besides({
          config: runConfig(2, { objective: { type: "rloo" } }),
          backend: Layer.succeed(Backend, without("rloo.gradient")),
        })
        assert.match(files.evicted() ?? "", /its objective cannot be compiled: no room for rloo.gradient/)
      }).pipe(Effect.scoped),
    ),
  )

  it("changes no other if its config is wrong", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { failure, files, warnings } = yield* besides({ folder: { ...runConfig(2), max_step: 3 } })
        assert.match(files.textOf("configs/config_validation_error.txt") ?? "", /orch\.yaml.*max_step/)
        assert.match(failure ?? "", /orch\.yaml.*max_step.*; the other runs are finished/)
        assert.lengthOf(
          warnings.filter((one) => one.includes("max_step")),
          1,
        )
      }).pipe(Effect.scoped),
    ),
  )

  it("ends the training with its reason if no other run is left", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const broken = runConfig(2, absurd(3))
        const error = yield* Effect.flip(trained(configOf({ b: broken }), { resultsDir }))
        assert.match(error.message, /no run is left to train: run_b was evicted: .*finite/)
      }).pipe(Effect.scoped),
    ))
})
