/**
 * Starts the processes of all ranks except the master, and connects them through the store of the config. With one rank,
 * there is nothing to start.
 */
import { Duration, Effect, Exit, type FileSystem, Latch, type Layer, Option, type Path, Scope } from "effect"
import type { WorkerError } from "../../spread/workers/WorkerError.ts"
import * as Rng from "../../base/rng/Rng.ts"
import type { MultiRunConfig } from "../config/MultiRunConfig.ts"
import { TrainerError } from "../TrainerError.ts"
import { Store } from "../store/Store.ts"
import { checkStore, openPlace, storeAt } from "./rankStore.ts"
import { RankProcesses } from "./RankProcesses.ts"

interface StartOptions {
  readonly settings: Pick<MultiRunConfig, "model" | "trainer" | "seed">
  /** The folder that the path of the model starts from. */
  readonly baseDir: string
  /** The folder that holds the folders of the runs. */
  readonly outputDirectory: string
}

/** The connection of the master to the other ranks. */
interface Ranks {
  readonly store: Layer.Layer<Store, TrainerError, FileSystem.FileSystem | Path.Path>
  /** Waits until the process of a rank has ended by itself, and fails with the reason. */
  readonly untilOneEnds: Effect.Effect<never, WorkerError>
}

/** Fails if the config asks for several ranks but no service can start their processes, or if their store cannot be used. */
export const checkRanks = Effect.fnUntraced(function* ({ trainer: { ranks, store } }: Pick<MultiRunConfig, "trainer">) {
  if (ranks === 1) return
  if (Option.isSome(yield* Effect.serviceOption(RankProcesses))) return yield* checkStore(store)
  return yield* new TrainerError({
    message: `trainer.ranks: expected 1, found ${ranks}; only Node starts processes for more: provide Node.rankProcesses`,
  })
})

/**
 * The number of seconds, after the first rank got a slot, in which all ranks must get slots. Otherwise the trainer gives its
 * slots back.
 */
const patienceSeconds = 60
/** The longest pause before the next try, as a multiple of `patienceSeconds`. */
const longestPause = 8

/**
 * Starts all ranks except the master, until the scope closes. On a cluster, a rank waits for a free slot of a worker. Two
 * trainers that each hold some slots would wait for each other for ever. So a trainer that does not get all of its slots in
 * time gives them back, and tries again after a random pause; the randomness lets one of the two get all slots.
 */
export const startRanks = Effect.fnUntraced(function* (
  options: StartOptions,
): Effect.fn.Return<Ranks, TrainerError | WorkerError, FileSystem.FileSystem | Path.Path | Scope.Scope> {
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

/** Starts all ranks except the master. Returns none if, some time after the first rank got a slot, others still wait. */
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
  // The time runs from the first slot on: before that, this trainer holds nothing for which another one waits.
  const patience = Effect.andThen(hasPlace.await, Effect.sleep(Duration.seconds(patienceSeconds)))
  const ends = yield* Effect.raceFirst(Effect.asSome(starting), Effect.as(patience, Option.none()))
  return Option.map(ends, (ends): Ranks => ({ store: storeAt(store), untilOneEnds: Effect.raceAllFirst(ends) }))
})
