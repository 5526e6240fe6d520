/**
 * One rank in a process of its own, for `processes.slow.test.ts`: counts steps of all runs together with the other ranks,
 * and saves a checkpoint at each. Arguments: the output folder, the folder of the store, the rank, the number of ranks.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import * as Layout from "../../src/trainer/Layout.ts"
import { Runs } from "../../src/trainer/runs/Runs.ts"
import { Store } from "../../src/trainer/store/Store.ts"

const [outputDirectory, directory, rank, ranks] = process.argv.slice(2)

const loop = Effect.gen(function* () {
  const runs = yield* Runs
  yield* runs.awaitRun
  for (;;) {
    for (const run of runs.slots()) {
      if (!runs.isMaster) continue
      run.progress.step += 1
      const folder = join(run.directory, Layout.checkpoint(run.progress.step))
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, Layout.inCheckpoint.progress), JSON.stringify(run.progress))
      writeFileSync(join(folder, Layout.stable), "")
    }
    yield* runs.checkForChanges
    yield* runs.syncRuns
    console.log(
      runs
        .slots()
        .map(({ id, progress }) => `${id} ${progress.step}`)
        .join(", "),
    )
  }
})

const layer = Runs.layer({
  outputDirectory,
  maxConcurrentRuns: 2,
  rank: Number(rank),
  ranks: Number(ranks),
  rankDeadline: "15 seconds",
  pollInterval: "50 millis",
}).pipe(Layer.provide(Store.layerFileSystem({ directory })), Layer.provide(NodeServices.layer))

await Effect.runPromise(Effect.provide(loop, layer)).catch((error: unknown) => {
  console.error(String(error))
  process.exit(1)
})
