/**
 * A program that has a compiler work in other processes, as a run does, and never ends. `native.slow.test.ts` kills it. Its
 * argument is a folder for caches. Other than in a run, the compiler has the usual priority, so that a busy machine starts it.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect } from "effect"
import { background } from "../../../src/tensor/backend/background-node.ts"
import { usualLimits } from "../../../src/tensor/backend/compiler-node.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { plainModules } from "../../../src/tensor/backend/wasmModules.ts"
import { layerProgram } from "./layerProgram.ts"

Effect.gen(function* () {
  const patience = { seconds: 0.01, computed: 0 }
  const { improve, opened } = background({ caches: process.argv[2], limits: usualLimits, patience })
  yield* Wasm.make({ ...plainModules, opened }).compile(layerProgram(33, 12, 20))
  yield* improve
  yield* Effect.never
}).pipe(Effect.scoped, NodeRuntime.runMain)
