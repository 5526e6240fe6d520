/** Holds the state of an engine, which its requests, its loop of steps and the changes of its weights share. */
import { Deferred, type Effect, type Exit, Latch } from "effect"
import { AnswerFormats } from "../constrained/AnswerFormats.ts"
import type { EngineError } from "./EngineError.ts"
import type { Detokenizer } from "./Job.ts"
import { PagedCache } from "./PagedCache.ts"
import { Scheduler } from "./Scheduler.ts"
import { makeStepWaiters } from "./stepWaiters.ts"
import type { StepModel } from "./StepModel.ts"
import { ModelVersions } from "./Versions.ts"

export interface EngineOptions {
  /** The name of the base model. */
  readonly name: string
  readonly tokenizer: Detokenizer
  /** The tokens that end an answer. */
  readonly eosIds?: ReadonlyArray<number>
  /** The training step of the base model's weights, 0 by default. */
  readonly step?: number
  /** The largest number of requests that run at the same time; by default, the number of rows of a step. */
  readonly mostRunning?: number
  /** The seed of the requests that have none: the n-th such request gets a number of `Rng.stream(seed, "request", n)`. */
  readonly seed?: number
  /**
   * Steps are computed only while this latch is open. A trainer that computes in the same thread closes it while it is busy.
   * Loading weights and accepting requests do not depend on the latch. By default it is always open.
   */
  readonly steps?: Latch.Latch
}

/** A change of the weights. It waits until no request needs the weights that it overwrites. */
export interface Change {
  /** Returns null if the change can be made now. Otherwise tells which requests may begin before the change is made. */
  readonly ready: () => { readonly mayBegin: (model: string) => boolean } | null
  readonly perform: Effect.Effect<void, EngineError>
  readonly done: Deferred.Deferred<void, EngineError>
}

/** The state of an engine. */
export interface EngineState {
  readonly model: StepModel
  /** The name of the base model. */
  readonly name: string
  readonly tokenizer: Detokenizer
  readonly eosIds: ReadonlyArray<number>
  readonly formats: AnswerFormats
  /** The seed of the requests that have none. */
  readonly seed: number
  /** Steps are computed only while this latch is open; without it, always. */
  readonly steps: Latch.Latch | undefined
  readonly versions: ModelVersions
  readonly scheduler: Scheduler
  readonly waiters: ReturnType<typeof makeStepWaiters>
  /** The waiting changes of the weights, in order. */
  readonly changes: Array<Change>
  /** The change that is being made. */
  making: Change | null
  /** Open while there may be something to do. */
  readonly work: Latch.Latch
  /** The largest number of tokens of a prompt and its answer together. */
  readonly maxLength: number
  /** The number of requests that have arrived. */
  arrived: number
  /** The number of requests without a seed. */
  unseeded: number
  /** The reason why the engine can no longer serve requests; null while it can. */
  closed: Exit.Exit<never, EngineError> | null
}

export const makeEngineState = (model: StepModel, options: EngineOptions): EngineState => {
  const { name, tokenizer, eosIds = [], step = 0, mostRunning = Infinity, seed = 0, steps } = options
  const cache = new PagedCache(model)
  const versions = new ModelVersions(cache, name, step, model.adapterSlots)
  return {
    model,
    name,
    tokenizer,
    eosIds,
    formats: new AnswerFormats(tokenizer, model.vocabSize),
    seed,
    steps,
    versions,
    scheduler: new Scheduler(model, cache, versions, mostRunning),
    waiters: makeStepWaiters((model) => versions.find(model)?.used.step),
    changes: [],
    making: null,
    work: Latch.makeUnsafe(false),
    maxLength: Math.min(model.maxLength, model.pages * model.pageSize),
    arrived: 0,
    unseeded: 0,
    closed: null,
  }
}

/** Ends all requests and changes, including later ones. If the engine is already closed, its first exit stays. */
export const closeEngine = (state: EngineState, exit: Exit.Exit<never, EngineError>): void => {
  state.closed ??= exit
  state.scheduler.endAll(exit)
  for (const { done } of state.changes.splice(0)) Deferred.doneUnsafe(done, exit)
}
