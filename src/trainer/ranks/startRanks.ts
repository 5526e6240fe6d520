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
import { Duration, Effect, Exit, type FileSystem, Latch, type Layer, Option, type Path, Scope } from "effect"
import * as Rng from "../../base/rng/Rng.ts"
import type { MultiRunConfig } from "../config/MultiRunConfig.ts"
import type { WorkerFailed, WorkerLost } from "../../spread/workers/WorkerError.ts"
import { MultiRunError } from "../MultiRunError.ts"
import { Store, type StoreError } from "../store/Store.ts"
import { checkStore, openPlace, storeAt } from "./rankStore.ts"
import { RankProcesses } from "./RankProcesses.ts"

interface StartOptions {
  readonly settings: Pick<MultiRunConfig, "model" | "trainer" | "seed">
  /** The folder that the path of the model starts from. */
  readonly baseDir: string
  /** The folder that holds the folders of the runs. */
  readonly outputDirectory: string
}

/** The connection of the master with the other ranks. */
interface Ranks {
  readonly store: Layer.Layer<Store, StoreError, FileSystem.FileSystem | Path.Path>
  /** Waits until the process of a rank has ended by itself, and fails with the reason. */
  readonly untilOneEnds: Effect.Effect<never, WorkerLost | WorkerFailed>
}

/** Fails if the config asks for several ranks, and nothing here can start their processes, or their store cannot be used. */
export const checkRanks = Effect.fnUntraced(function* ({ trainer: { ranks, store } }: Pick<MultiRunConfig, "trainer">) {
  if (ranks === 1) return
  if (Option.isSome(yield* Effect.serviceOption(RankProcesses))) return yield* checkStore(store)
  return yield* new MultiRunError({
    message: `trainer.ranks: expected 1, found ${ranks}; only Node starts processes for more: provide Node.rankProcesses`,
  })
})

/** The seconds after its first place in which a trainer must get the places of all ranks. Otherwise, it gives them back. */
const patienceSeconds = 60
/** The longest pause until it tries again is this many times as long. */
const longestPause = 8

/**
 * Starts all ranks but the master, until the scope closes. On a cluster, a rank waits until it has a place. Two trainers that
 * each hold a part of the places would wait for each other for ever, so a trainer that does not get all of its places gives
 * those back that it has, and tries again after a pause. The pauses are random, so that one trainer gets all places.
 */
export const startRanks = Effect.fnUntraced(function* (
  options: StartOptions,
): Effect.fn.Return<Ranks, MultiRunError | WorkerLost | WorkerFailed, FileSystem.FileSystem | Path.Path | Scope.Scope> {
  const { seed, trainer } = options.settings
  const processes = yield* Effect.serviceOption(RankProcesses)
  if (trainer.ranks === 1 || Option.isNone(processes)) return { store: Store.memory(), untilOneEnds: Effect.never }
  const scope = yield* Effect.scope
  const random = Rng.stream(seed, "places", options.outputDirectory)
  for (let tries = 0; ; tries++) {
    const ofTry = yield* Scope.fork(scope)
    const started = yield* Scope.provide(startAll(options, processes.value), ofTry)
    if (Option.isSome(started)) return started.value
    yield* Scope.close(ofTry, Exit.void)
    const seconds = Math.ceil(random.uniform() * patienceSeconds * Math.min(longestPause, 2 ** tries))
    yield* Effect.logWarning(
      `not all ${trainer.ranks - 1} ranks got a slot of a worker in ${patienceSeconds} s: another trainer may wait for the slots of this one, so it gives them back and tries again in ${seconds} s; more workers would help`,
    )
    yield* Effect.sleep(Duration.seconds(seconds))
  }
})

/** Starts all ranks but the master. Returns none if only some of them have had a place for a while. */
const startAll = Effect.fnUntraced(function* (
  { settings, baseDir, outputDirectory }: StartOptions,
  processes: RankProcesses["Service"],
) {
  const { model, trainer, seed } = settings
  const store = yield* openPlace(trainer.store, { outputDirectory, deadlineSeconds: trainer.rankDeadline })
  const task = { model, trainer, seed, baseDir, outputDirectory, store }
  const hasPlace = Latch.makeUnsafe()
  const starting = Effect.forEach(
    Array.from({ length: trainer.ranks - 1 }),
    (_, place) => Effect.tap(processes.start({ ...task, rank: place + 1 }), () => hasPlace.open),
    { concurrency: "unbounded" },
  )
  // A trainer that has no place holds nothing for which another one waits.
  const patience = Effect.andThen(hasPlace.await, Effect.sleep(Duration.seconds(patienceSeconds)))
  const ends = yield* Effect.raceFirst(Effect.asSome(starting), Effect.as(patience, Option.none()))
  return Option.map(ends, (ends): Ranks => ({ store: storeAt(store), untilOneEnds: Effect.raceAllFirst(ends) }))
})
