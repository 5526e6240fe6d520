import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Layout from "../../../src/multirun/Layout.ts"
import { firstStepOf } from "../../../src/multirun/outside/orchestrateFolder.ts"
import { writeStep } from "../../../src/multirun/runs/stepFolders.ts"
import { disk } from "../../run/store/disk.ts"
import { temporaryRunFolder } from "../folders.ts"

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
