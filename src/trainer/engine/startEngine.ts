/**
 * Starts the engine of a trainer: in a thread of its own if the config asks for that, otherwise in this thread. An engine in
 * this thread takes turns with the trainer.
 */
import { Context, Effect, Latch, Layer, Option, type Scope, Stream } from "effect"
import type { WorkerError } from "../../spread/workers/WorkerError.ts"
import type { Backend } from "../../tensor/backend/Backend.ts"
import { Engine, type EngineService, type Generated } from "../../decoder/inference/Engine.ts"
import type { EngineError } from "../../decoder/inference/EngineError.ts"
import type { BaseModel } from "../baseModel.ts"
import type { MultiRunConfig } from "../config/MultiRunConfig.ts"
import { TrainerError } from "../TrainerError.ts"
import { engineModel } from "./engineModel.ts"
import { EngineThreads } from "./EngineThreads.ts"
import { type Gathering, makeGathering } from "./gathering.ts"

interface StartOptions {
  readonly settings: Pick<MultiRunConfig, "model" | "trainer" | "inference" | "seed">
  readonly base: BaseModel
  /** The folder that the path of the model starts from. */
  readonly baseDir: string
}

/** The engine of a trainer. */
export interface TrainerEngine {
  readonly engine: EngineService
  /** The number of tokens that the engine has generated. */
  readonly generatedTokens: Effect.Effect<number>
  /** Wraps every wait of the trainer for samples; see `DataLoaderOptions`. */
  readonly waiting: (wait: Effect.Effect<void>) => Effect.Effect<void>
  /** Groups the runs that begin to generate; undefined if the engine works in this thread, in turns with the trainer. */
  readonly gathering: Gathering | undefined
  /** Waits until the engine has ended by itself, and fails with the reason. */
  readonly untilLost: Effect.Effect<never, WorkerError>
}

type Settings = Pick<MultiRunConfig, "inference" | "trainer" | "orchestrators">

/** Tells whether a config asks for an engine in a thread of its own. `null` asks for it if several runs are trained. */
const wantsThread = ({ inference: { ownThread }, trainer: { lora, maxRuns } }: Omit<Settings, "orchestrators">) =>
  ownThread ?? (lora !== null && maxRuns > 1)

/** Fails if the config asks for an engine in a thread of its own, and no service can start one. */
export const checkEngine = Effect.fnUntraced(function* ({ inference, orchestrators }: Settings) {
  if (inference.ownThread !== true || orchestrators === "outside") return
  if (Option.isSome(yield* Effect.serviceOption(EngineThreads))) return
  return yield* new TrainerError({
    message:
      "inference.own_thread: expected null or false, found true; only Node starts threads: provide Node.trainerThreads",
  })
})

const isClosed = ({ reason }: EngineError): boolean => reason === "closed"

/**
 * Makes an engine for the end of a trainer. When the engine is closed, its requests for answers never return, because a
 * failure would evict the runs that asked. Changes of weights do return, because the trainer makes them where it cannot be
 * interrupted.
 */
const untilTrainerEnds = (engine: EngineService): EngineService => ({
  ...engine,
  generate: (request) => Effect.catchIf(engine.generate(request), isClosed, () => Effect.never),
  stream: (request) => Stream.catchIf(engine.stream(request), isClosed, () => Stream.never),
  loadAdapter: (adapter) => Effect.catchIf(engine.loadAdapter(adapter), isClosed, () => Effect.void),
  unloadAdapter: (name) => Effect.catchIf(engine.unloadAdapter(name), isClosed, () => Effect.void),
  loadWeights: (weights) => Effect.catchIf(engine.loadWeights(weights), isClosed, () => Effect.void),
})

/** Starts the engine, which works until the scope closes. */
export const startEngine = Effect.fnUntraced(function* ({
  settings,
  base,
  baseDir,
}: StartOptions): Effect.fn.Return<TrainerEngine, TrainerError | WorkerError, Backend | Scope.Scope> {
  const threads = yield* Effect.serviceOption(EngineThreads)
  if (wantsThread(settings) && Option.isSome(threads)) {
    const { model, trainer, inference, seed } = settings
    const { engine, untilLost } = yield* threads.value.start({
      model,
      trainer,
      inference,
      seed,
      baseDir,
      name: base.name,
    })
    const gathering = makeGathering()
    let generated = 0
    const count = ({ tokens }: Generated) => Effect.sync(() => void (generated += tokens.length))
    const patient = untilTrainerEnds(engine)
    return {
      engine: { ...patient, generate: (request) => Effect.tap(patient.generate(request), count) },
      // Count here: asking the thread would make the trainer wait for a step of the engine.
      generatedTokens: Effect.sync(() => generated),
      waiting: (wait) => Effect.andThen(Effect.sync(gathering.open), wait),
      gathering,
      untilLost,
    }
  }
  // In this thread, the engine generates only while the trainer has nothing to train. Otherwise the runs would drift apart,
  // and each would generate alone, in steps that are far from full.
  const steps = Latch.makeUnsafe(false)
  const engine = yield* Layer.build(Engine.layer({ ...engineModel(settings, base), steps })).pipe(
    Effect.map(Context.get(Engine)),
    Effect.mapError(TrainerError.from),
  )
  return {
    engine,
    generatedTokens: Effect.map(engine.status, ({ generatedTokens }) => generatedTokens),
    waiting: (wait) =>
      Effect.acquireUseRelease(
        steps.open,
        () => wait,
        () => steps.close,
      ),
    gathering: undefined,
    untilLost: Effect.never,
  }
})
