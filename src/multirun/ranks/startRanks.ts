/**
 * Starts the processes of all ranks but the master, and connects them by a folder next to those of the runs, which is
 * removed when the scope closes. With one rank, there is nothing to start.
 *
 * @example
 * ```ts
 * const { store, untilOneEnds } = yield* startRanks({ settings, baseDir: ".", outputDirectory: "outputs" })
 * yield* Effect.raceFirst(Effect.provide(training, store), untilOneEnds)
 * ```
 */
import { Effect, FileSystem, type Layer, Option, Path, type Scope } from "effect"
import { makeFolder, systemMessage } from "../../config/files.ts"
import * as Layout from "../Layout.ts"
import type { MultiRunConfig } from "../config/MultiRunConfig.ts"
import { MultiRunError } from "../MultiRunError.ts"
import { Store, type StoreError } from "../store/Store.ts"
import { storeOf } from "./rankParts.ts"
import { type RankFailed, type RankLost, RankProcesses } from "./RankProcesses.ts"

export interface StartOptions {
  readonly settings: Pick<MultiRunConfig, "model" | "trainer" | "seed">
  /** The folder that the path of the model starts from. */
  readonly baseDir: string
  /** The folder that holds the folders of the runs. */
  readonly outputDirectory: string
}

/** The connection of the master with the other ranks. */
export interface Ranks {
  readonly store: Layer.Layer<Store, StoreError, FileSystem.FileSystem | Path.Path>
  /** Waits until the process of a rank has ended by itself, and fails with the reason. */
  readonly untilOneEnds: Effect.Effect<never, RankLost | RankFailed>
}

/** Fails if the config asks for several ranks, and nothing here can start their processes. */
export const checkRanks = Effect.fnUntraced(function* ({ trainer: { ranks } }: Pick<MultiRunConfig, "trainer">) {
  if (ranks === 1 || Option.isSome(yield* Effect.serviceOption(RankProcesses))) return
  return yield* new MultiRunError({
    message: `trainer.ranks: expected 1, found ${ranks}; only Node starts processes for more: provide Node.rankProcesses`,
  })
})

/** Starts all ranks but the master, until the scope closes. */
export const startRanks = Effect.fnUntraced(function* ({
  settings,
  baseDir,
  outputDirectory,
}: StartOptions): Effect.fn.Return<Ranks, MultiRunError, FileSystem.FileSystem | Path.Path | Scope.Scope> {
  const { model, trainer, seed } = settings
  yield* checkRanks(settings)
  const processes = yield* Effect.serviceOption(RankProcesses)
  if (trainer.ranks === 1 || Option.isNone(processes)) return { store: Store.memory(), untilOneEnds: Effect.never }
  const store = yield* privateFolder((yield* Path.Path).join(outputDirectory, Layout.ranks))
  const task = { model, trainer, seed, baseDir, outputDirectory, store }
  const ends = yield* Effect.forEach(Array.from({ length: trainer.ranks - 1 }), (_, place) =>
    processes.value.start({ ...task, rank: place + 1 }),
  )
  return { store: storeOf(store), untilOneEnds: Effect.raceAllFirst(ends) }
})

/** Makes an empty folder inside `parent` until the scope closes, and removes those that a killed trainer has left. */
const privateFolder = Effect.fnUntraced(
  function* (parent: string) {
    const fs = yield* FileSystem.FileSystem
    // Ranks of a killed trainer may still be about to end, and write.
    const removed = Effect.ignore(fs.remove(parent, { recursive: true, force: true }))
    yield* removed
    yield* Effect.acquireRelease(makeFolder(parent), () => removed)
    return yield* fs.makeTempDirectory({ directory: parent, prefix: "store-" })
  },
  (folder, parent) =>
    Effect.mapError(
      folder,
      (error) => new MultiRunError({ message: `${parent}: cannot make it: ${systemMessage(error)}` }),
    ),
)
