// Keeps checkpoints in a store of your own, while the rest of a run stays in its folder: here Effect's KeyValueStore, whose
// other Layers keep it on disk or in a database. The second training resumes from the checkpoint of the first.
//   npx node examples/own-parts/own-checkpoints.ts
import { Effect, Layer } from "effect"
import { KeyValueStore } from "effect/persistence"
import { CartPole, Checkpoints, type Folder, Ppo, Recorder, RunStore, Train, Wasm } from "effect-rl"

/** A store opens the folder of a run's checkpoints by the run's path. Four functions are enough. */
const folderIn =
  (store: KeyValueStore.KeyValueStore) =>
  (directory: string): Folder.Folder => {
    const folder = KeyValueStore.prefix(store, `${directory}/`)
    return { read: folder.getUint8Array, write: folder.set, list: folder.keys, remove: folder.remove }
  }

const train = (totalSteps: number, layers: Layer.Layer<RunStore>) =>
  Train.run({ env: CartPole.env, algorithm: Ppo.make({ nsteps: 64 }), totalSteps }).pipe(
    Effect.provide(Layer.mergeAll(Wasm.layer, Recorder.layerSilent, layers)),
  )

const program = Effect.gen(function* () {
  const store = yield* KeyValueStore.KeyValueStore
  const checkpoints = Checkpoints.layer(folderIn(store))
  const { files, layer } = RunStore.memory()
  const { runDir } = yield* train(2048, Layer.merge(layer, checkpoints))
  const again = RunStore.memory({ files, resume: runDir }).layer
  const resumed = yield* train(4096, Layer.merge(again, checkpoints))
  return { ...resumed, keys: yield* store.keys, files: [...files.keys()] }
})

export const outcome = await Effect.runPromise(Effect.provide(program, KeyValueStore.layerMemory))
console.log(`resumed to ${outcome.steps} steps; the store has ${outcome.keys.length} keys`)
