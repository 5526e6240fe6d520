import { Effect, type Scope } from "effect"
import type { NamedArray } from "../../../src/tensor/graph/Parameters.ts"
import { sizeOf } from "../../../src/tensor/graph/Tensor.ts"
import { parse } from "../../../src/trainer/config/OrchestratorConfig.ts"
import type { Hooks, RunSlot } from "../../../src/trainer/runs/RunSlot.ts"
import { makeTrainedRun } from "../../../src/trainer/runs/TrainedRun.ts"
import { inMemory, treeOf } from "../../../src/run/store/Folder.ts"
import * as Rng from "../../../src/base/rng/Rng.ts"

/** The hooks of runs, which a test calls itself, in the order in which `Runs` does. */
export const fakeRuns = () => {
  const registered: Array<Hooks> = []
  const all = (kind: "creation" | "deletion", slot: RunSlot) =>
    Effect.forEach(registered, (hooks) => hooks[kind]?.(slot, null) ?? Effect.void, { discard: true })
  return {
    register: (hooks: Hooks): Effect.Effect<void, never, Scope.Scope> => Effect.sync(() => void registered.push(hooks)),
    create: (slot: RunSlot) => all("creation", slot),
    remove: (slot: RunSlot) => all("deletion", slot),
  }
}

let generation = 0

/** The folder of a run, in memory. */
const folderOf = (id: string) => {
  const directory = `/runs/${id}`
  const tree = treeOf(directory, inMemory(new Map())(directory))
  return { id, directory, own: makeTrainedRun({ id, directory, tree, guarded: (operation) => operation }) }
}

/** A new run. `config` is the text of its `orch.toml`. */
export const slotOf = (index: number, config = "", step = 0): RunSlot => ({
  ...folderOf(`run_${index}`),
  index,
  generation: generation++,
  config: Effect.runSync(parse(config, "orch.toml")),
  progress: { step, totalTokens: 0, totalSamples: 0 },
  readyToUpdate: false,
})

/** The parameters of an adapter: two matrices and, because nothing says that all are matrices, a vector. */
const shapes = { "q.lora_A.weight": [2, 4], "q.lora_B.weight": [5, 2], scale: [3] }
export const size = Object.values(shapes).reduce((sum, shape) => sum + sizeOf(shape), 0)

/** Draws an adapter: its numbers in one array, and views into it by name. */
export const adapterOf = (seed: number) => {
  const flat = new Float32Array(size)
  const random = Rng.stream(seed, "adapter")
  for (let at = 0; at < size; at++) flat[at] = random.uniformAt(at) - 0.5
  const named: Record<string, NamedArray> = {}
  let offset = 0
  for (const [name, shape] of Object.entries(shapes)) {
    named[name] = { shape, data: flat.subarray(offset, offset + sizeOf(shape)) }
    offset += sizeOf(shape)
  }
  return { flat, named }
}

/** Draws the gradient of a step. */
export const gradientOf = (seed: number, step: number): Float32Array => {
  const random = Rng.stream(seed, "gradient", step)
  return Float32Array.from({ length: size }, (_, at) => 4 * random.uniformAt(at) - 2)
}
