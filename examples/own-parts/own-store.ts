// Keeps every file of a run in a store of your own: here Effect's KeyValueStore, which could as well be a database.
//   npx node examples/own-parts/own-store.ts
import { Effect, Layer } from "effect"
import { KeyValueStore } from "effect/persistence"
import { CartPole, type Folder, Ppo, Recorder, RunStore, scores, Train, Wasm } from "effect-rl"

/** A store opens the folder of a run by the run's path. Four functions are enough. */
const folderIn =
  (store: KeyValueStore.KeyValueStore) =>
  (directory: string): Folder.Folder => {
    const folder = KeyValueStore.prefix(store, `${directory}/`)
    return { read: folder.getUint8Array, write: folder.set, list: folder.keys, remove: folder.remove }
  }

const train = (totalSteps: number, store: Layer.Layer<RunStore>) =>
  Train.run({ env: CartPole.env, algorithm: Ppo.make({ nsteps: 64 }), totalSteps }).pipe(
    Effect.provide(Layer.mergeAll(Wasm.layer, Recorder.layer(scores), store)),
  )

const program = Effect.gen(function* () {
  const store = yield* KeyValueStore.KeyValueStore
  const { runDir } = yield* train(2048, RunStore.layer(folderIn(store)))
  const resumed = yield* train(4096, RunStore.layer(folderIn(store), { resume: runDir }))
  return { ...resumed, keys: yield* store.keys }
})

export const outcome = await Effect.runPromise(Effect.provide(program, KeyValueStore.layerMemory))
console.log(`resumed to ${outcome.steps} steps; the store has ${outcome.keys.length} keys`)
