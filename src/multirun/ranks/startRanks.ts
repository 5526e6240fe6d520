/**
 * Starts the processes of all ranks but the master, and connects them by the store that the config chooses. With one rank,
 * there is nothing to start.
 *
 * @example
 * ```ts
 * const { store, untilOneEnds } = yield* startRanks({ settings, baseDir: ".", outputDirectory: "outputs" })
 * yield* Effect.raceFirst(Effect.provide(training, store), untilOneEnds)
 * ```
 */
import { Effect, type FileSystem, type Layer, Option, type Path, type Scope } from "effect"
import type { MultiRunConfig } from "../config/MultiRunConfig.ts"
import { MultiRunError } from "../MultiRunError.ts"
import { Store, type StoreError } from "../store/Store.ts"
import { checkStore, openPlace, storeAt } from "./rankStore.ts"
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

/** Fails if the config asks for several ranks, and nothing here can start their processes, or their store cannot be used. */
export const checkRanks = Effect.fnUntraced(function* ({ trainer: { ranks, store } }: Pick<MultiRunConfig, "trainer">) {
  if (ranks === 1) return
  if (Option.isSome(yield* Effect.serviceOption(RankProcesses))) return yield* checkStore(store)
  return yield* new MultiRunError({
    message: `trainer.ranks: expected 1, found ${ranks}; only Node starts processes for more: provide Node.rankProcesses`,
  })
})

/** Starts all ranks but the master, until the scope closes. */
export const startRanks = Effect.fnUntraced(function* ({
  settings,
  baseDir,
  outputDirectory,
}: StartOptions): Effect.fn.Return<
  Ranks,
  MultiRunError | RankLost | RankFailed,
  FileSystem.FileSystem | Path.Path | Scope.Scope
> {
  const { model, trainer, seed } = settings
  const processes = yield* Effect.serviceOption(RankProcesses)
  if (trainer.ranks === 1 || Option.isNone(processes)) return { store: Store.memory(), untilOneEnds: Effect.never }
  const store = yield* openPlace(trainer.store, { outputDirectory, deadlineSeconds: trainer.rankDeadline })
  const task = { model, trainer, seed, baseDir, outputDirectory, store }
  const ends = yield* Effect.forEach(
    Array.from({ length: trainer.ranks - 1 }),
    (_, place) => processes.value.start({ ...task, rank: place + 1 }),
    { concurrency: "unbounded" },
  )
  return { store: storeAt(store), untilOneEnds: Effect.raceAllFirst(ends) }
})
