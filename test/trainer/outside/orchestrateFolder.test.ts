import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect, Fiber, Layer, PlatformError, Schema } from "effect"
import { TestClock } from "effect/testing"
import { MultiRunConfig } from "../../../src/trainer/config/MultiRunConfig.ts"
import * as Layout from "../../../src/trainer/Layout.ts"
import { mostAttempts } from "../../../src/trainer/outside/persistence.ts"
import { firstStepOf, orchestrateFolder, type PlayEvent } from "../../../src/trainer/outside/orchestrateFolder.ts"
import { writeStep } from "../../../src/trainer/runs/stepFolders.ts"
import { disk } from "../../run/store/disk.ts"
import { makeBadDisk } from "../badDisk.ts"
import { temporaryRunFolder } from "../folders.ts"
import { filesIn } from "../ranks.ts"

describe("the first step that an orchestrator plays", () => {
  it.effect("follows the newest samples, or is that of the newest weights if older samples were removed", () =>
    Effect.gen(function* () {
      const { tree } = yield* temporaryRunFolder
      assert.strictEqual(yield* firstStepOf(tree), 0)
      yield* writeStep(tree, Layout.broadcasts, 4, {})
      assert.strictEqual(yield* firstStepOf(tree), 4)
      yield* writeStep(tree, Layout.rollouts, 2, {})
      assert.strictEqual(yield* firstStepOf(tree), 4)
      yield* writeStep(tree, Layout.rollouts, 5, {})
      assert.strictEqual(yield* firstStepOf(tree), 6)
    }).pipe(Effect.scoped, Effect.provide(disk)),
  )
})

describe("an orchestrator on a disk that stays full", () => {
  it.effect("gives up its run after some attempts, and evicts nothing", () =>
    Effect.gen(function* () {
      const { directory } = yield* temporaryRunFolder
      const files = filesIn(join(directory, ".."))
      files.write("run_full/configs/orch.yaml", "train_dataset: { type: reverse_text }\nmax_steps: 1\n")
      files.write("run_full/control/token", "run_full 1 0\n")
      files.write("run_full/broadcast/step_0/STABLE", "")
      const { disk: full, layer } = makeBadDisk()
      full.before = (operation, path) =>
        operation === "writeFileString" && path.startsWith(files.at("run_full"))
          ? PlatformError.systemError({
              _tag: "Unknown",
              module: "FileSystem",
              method: operation,
              description: "no space left",
            })
          : undefined
      const settings = Schema.decodeSync(MultiRunConfig)({
        kind: "multirun",
        model: { type: "scratch", tokenizer: { alphabet: "ab" } },
        runs: {},
      })
      const events: Array<PlayEvent> = []
      const playing = orchestrateFolder({
        trainer: { directory: files.at(), settings, run: null },
        only: "run_full",
        server: { modelOf: () => Effect.die("not asked"), refused: Effect.never },
        owner: { name: "process 1 on here", isAlive: () => Effect.succeed(true) },
        report: (event) => Effect.sync(() => void events.push(event)),
      }).pipe(Effect.provide(Layer.merge(layer, NodeHttpClient.layerUndici)))
      const fiber = yield* Effect.forkChild(playing)
      while (fiber.pollUnsafe() === undefined) {
        yield* TestClock.adjust("500 millis")
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      }
      const [state] = yield* Fiber.join(fiber)
      assert.strictEqual(state._tag, "Trained")
      assert.deepStrictEqual(
        events.map(({ _tag }) => _tag),
        [...Array.from({ length: mostAttempts - 1 }, () => "Again"), "GivenUp"],
      )
      assert.match(JSON.stringify(events.at(-1)), /cannot lock .*player\.lock: .*no space left/)
    }).pipe(Effect.scoped, Effect.provide(disk)),
  )
})
