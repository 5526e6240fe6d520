/** Makes an `Engine` from a model that computes steps. One fiber runs the steps while there is work, and sleeps otherwise. */
import { Cause, Deferred, Effect, Exit, Latch, Option, Queue, Schema, type Scope, Stream } from "effect"
import type { BackendError } from "../../tensor/backend/Backend.ts"
import { messageOf } from "../../base/config/text.ts"
import { stream } from "../../base/rng/Rng.ts"
import type { EngineService, Generated, GenerateEvent, GenerateRequest, ModelInfo } from "./EngineService.ts"
import { type EngineError, engineError } from "./EngineError.ts"
import { type Detokenizer, Job } from "./Job.ts"
import { PagedCache } from "./PagedCache.ts"
import { Sampling } from "./Sampling.ts"
import { Scheduler } from "./Scheduler.ts"
import { makeStepWaiters } from "./stepWaiters.ts"
import type { StepModel } from "./StepModel.ts"
import { Versions } from "./Versions.ts"

export interface EngineOptions {
  /** The name of the base model. */
  readonly name: string
  readonly tokenizer: Detokenizer
  /** The tokens that end an answer. */
  readonly eosIds?: ReadonlyArray<number>
  /** The training step of the base model's weights, 0 by default. */
  readonly step?: number
  /** The most requests that run at the same time; by default, as many as a step has rows. */
  readonly mostRunning?: number
  /** The seed of the requests that have none: the n-th such request takes a number of `Rng.stream(seed, "request", n)`. */
  readonly seed?: number
  /**
   * Steps are computed only while this latch is open. A trainer that computes in the same thread closes it while it has
   * work of its own. New weights are loaded and requests accepted in any case. By default it is always open.
   */
  readonly steps?: Latch.Latch
}

/** A change of the weights, which waits until no request needs the numbers that it overwrites. */
interface Change {
  /** Says whether the change can be made now; otherwise which requests may not begin until then. */
  readonly ready: () => { readonly mayBegin: (model: string) => boolean } | null
  readonly perform: Effect.Effect<void, EngineError>
  readonly done: Deferred.Deferred<void, EngineError>
}

const decodeSampling = Schema.decodeUnknownEffect(Sampling, { errors: "first", onExcessProperty: "error" })

const always = (): boolean => true
const never = (): boolean => false

export const makeEngine = Effect.fnUntraced(function* (
  model: StepModel,
  options: EngineOptions,
): Effect.fn.Return<EngineService, never, Scope.Scope> {
  const { name, tokenizer, eosIds = [], step = 0, mostRunning = Infinity, seed = 0, steps } = options
  const cache = new PagedCache(model)
  const versions = new Versions(cache, name, step, model.adapterSlots)
  const scheduler = new Scheduler(model, cache, versions, mostRunning)
  const waiters = makeStepWaiters((model) => versions.find(model)?.used.step)
  const changes: Array<Change> = []
  let making: Change | null = null
  const work = Latch.makeUnsafe(false)
  const maxLength = Math.min(model.maxLength, model.pages * model.pageSize)
  let arrived = 0
  /** The number of requests without a seed. */
  let unseeded = 0
  /** Why no request can be served any more. */
  let closed: Exit.Exit<never, EngineError> | null = null

  const close = (exit: Exit.Exit<never, EngineError>): void => {
    closed ??= exit
    scheduler.endAll(exit)
    for (const { done } of changes.splice(0)) Deferred.doneUnsafe(done, exit)
  }

  /** Makes the changes that can be made now, in their order. Returns which requests may begin. */
  const makeChanges = Effect.gen(function* () {
    for (let change = changes.at(0); change !== undefined; change = changes.at(0)) {
      const wait = change.ready()
      if (wait !== null) return wait.mayBegin
      making = change
      const exit = yield* Effect.exit(change.perform)
      making = null
      changes.splice(changes.indexOf(change), 1)
      Deferred.doneUnsafe(change.done, exit)
      waiters.look()
    }
    return always
  })

  const runStep = Effect.gen(function* () {
    // Close this first: a request that ends below can resume its caller at once, which may bring new work.
    work.closeUnsafe()
    const mayBegin = changes.length === 0 ? always : yield* makeChanges
    // A change of the weights must not wait for the latch, because its caller may have closed it. So requests whose end
    // the change waits for go on.
    if (steps !== undefined && !steps.isOpen() && changes.length === 0)
      return yield* Effect.raceFirst(steps.await, work.await)
    const planned = scheduler.plan(mayBegin)
    if (planned === null) return yield* work.await
    const exit = yield* Effect.exit(planned.program.run)
    if (Exit.isSuccess(exit)) scheduler.apply(planned)
    else scheduler.fail((yield* failureOf(exit.cause)).message)
    // The fibers of the requests run between the steps.
    yield* Effect.yieldNow
  })

  yield* Effect.addFinalizer(() =>
    Effect.sync(() =>
      close(Exit.fail(engineError(name, "closed", "the engine was closed before the request was complete"))),
    ),
  )
  yield* Effect.forever(runStep).pipe(
    // Only a defect ends the loop. All requests end with it, instead of waiting for ever.
    Effect.onError((cause) =>
      Effect.sync(() => (Cause.hasInterruptsOnly(cause) ? undefined : close(Exit.failCause(cause)))),
    ),
    Effect.forkScoped,
  )

  const submit = Effect.fnUntraced(function* (
    { model: modelName, promptIds, sampling: options = {} }: GenerateRequest,
    hooks: Pick<ConstructorParameters<typeof Job>[0], "onEvent" | "onEnd">,
  ): Effect.fn.Return<Job, EngineError> {
    if (closed !== null) return yield* closed
    const refuse = (reason: EngineError["reason"], problem: string): EngineError =>
      engineError(modelName, reason, problem)
    if (versions.find(modelName) === undefined) {
      const names = [name, ...versions.loadedAdapters.map(({ model }) => model)]
      return yield* refuse("unknownModel", `there is no such model; expected one of ${names.join(", ")}`)
    }
    const sampling = yield* Effect.mapError(decodeSampling(options), (error) =>
      refuse("invalidRequest", `sampling: ${messageOf(error)}`),
    )
    const { length } = promptIds
    if (length === 0) return yield* refuse("invalidRequest", "the prompt is empty; expected one token or more")
    if (length >= maxLength) {
      const problem = `the prompt has ${length} tokens; expected at most ${maxLength - 1}, as prompt and answer together`
      return yield* refuse("promptTooLong", `${problem} have room for ${maxLength}`)
    }
    const isToken = (id: number): boolean => Number.isInteger(id) && id >= 0 && id < model.vocabSize
    for (let at = 0; at < length; at++) {
      if (isToken(promptIds[at])) continue
      const problem = `token ${at} of the prompt: expected an id from 0 to ${model.vocabSize - 1}, found ${promptIds[at]}`
      return yield* refuse("tokenOutOfRange", problem)
    }
    const wrong = sampling.stopTokenIds.find((id) => !isToken(id))
    if (wrong !== undefined) {
      const problem = `stopTokenIds: expected ids from 0 to ${model.vocabSize - 1}, found ${wrong}`
      return yield* refuse("tokenOutOfRange", problem)
    }
    const job = new Job({
      order: arrived++,
      model: modelName,
      promptIds,
      sampling,
      seed: sampling.seed ?? stream(seed, "request", unseeded++).uint32(),
      eosIds,
      maxLength: Math.min(maxLength, length + (sampling.maxTokens ?? maxLength)),
      detokenizer: tokenizer,
      ...hooks,
    })
    scheduler.add(job)
    work.openUnsafe()
    return job
  })

  const cancel = (job: Job): Effect.Effect<void> => Effect.sync(() => scheduler.end(job, Exit.interrupt()))

  const generate = (request: GenerateRequest): Effect.Effect<Generated, EngineError> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.suspend(() => {
        const done = Deferred.makeUnsafe<Generated, EngineError>()
        return Effect.flatMap(submit(request, { onEnd: (exit) => Deferred.doneUnsafe(done, exit) }), (job) =>
          Effect.onInterrupt(restore(Deferred.await(done)), () => cancel(job)),
        )
      }),
    )

  const streamEvents = (request: GenerateRequest): Stream.Stream<GenerateEvent, EngineError> =>
    Stream.callback((queue) => {
      const hooks = {
        onEvent: (event: GenerateEvent) => Queue.offerUnsafe(queue, event),
        onEnd: (exit: Exit.Exit<Generated, EngineError>) =>
          Exit.isSuccess(exit) ? Queue.endUnsafe(queue) : Queue.failCauseUnsafe(queue, exit.cause),
      }
      return Effect.matchCauseEffect(Effect.acquireRelease(submit(request, hooks), cancel), {
        onFailure: (cause) => Queue.failCause(queue, cause),
        onSuccess: () => Effect.void,
      })
    })

  /** Adds a change to those that wait, and returns when it is made. A caller that is interrupted takes it back. */
  const change = (ready: Change["ready"], perform: Change["perform"]): Effect.Effect<void, EngineError> =>
    Effect.suspend(() => {
      if (closed !== null) return closed
      const entry: Change = { ready, perform, done: Deferred.makeUnsafe() }
      changes.push(entry)
      work.openUnsafe()
      return Effect.onInterrupt(Deferred.await(entry.done), () =>
        Effect.sync(() => {
          // A change that is being made is completed.
          const index = changes.indexOf(entry)
          if (index !== -1 && entry !== making) changes.splice(index, 1)
        }),
      )
    })

  const onDevice = (model: string, effect: Effect.Effect<void, BackendError>): Effect.Effect<void, EngineError> =>
    Effect.mapError(effect, ({ message }) => engineError(model, "backend", message))

  const loadAdapter: EngineService["loadAdapter"] = ({ name: adapterName, step, adapter }) =>
    Effect.suspend(() => {
      if (adapterName === name)
        return Effect.fail(engineError(name, "invalidRequest", "an adapter needs another name than the base model"))
      const problem = model.adapterProblem(adapter)
      if (problem !== undefined) return Effect.fail(engineError(adapterName, "wrongWeights", problem))
      return change(
        () => {
          const place = versions.placeFor(adapterName)
          if (place === "drain") return { mayBegin: (other) => other !== adapterName }
          return place === "wait" ? { mayBegin: always } : null
        },
        Effect.suspend(() => {
          const place = versions.placeFor(adapterName)
          if (typeof place === "number") {
            const write = onDevice(adapterName, model.writeAdapter(place, adapter))
            return Effect.tapError(
              Effect.map(write, () => versions.replace(adapterName, step, place)),
              // The failed write may have damaged the old version, if it had the same place.
              () =>
                Effect.sync(() =>
                  versions.find(adapterName)?.slot === place ? versions.unload(adapterName) : undefined,
                ),
            )
          }
          const problem = `there is room for ${model.adapterSlots} adapters; unload one, or make the engine with more`
          return Effect.fail(engineError(adapterName, "full", problem))
        }),
      )
    })

  const unloadAdapter: EngineService["unloadAdapter"] = (adapterName) =>
    change(
      () => null,
      Effect.suspend(() =>
        versions.unload(adapterName)
          ? Effect.void
          : Effect.fail(engineError(adapterName, "unknownModel", "there is no such adapter")),
      ),
    )

  const loadWeights: EngineService["loadWeights"] = ({ step, weights }) =>
    Effect.suspend(() => {
      const problem = model.weightsProblem(weights)
      if (problem !== undefined) return Effect.fail(engineError(name, "wrongWeights", problem))
      return change(
        () => (scheduler.isBusy ? { mayBegin: never } : null),
        Effect.tapError(
          Effect.map(onDevice(name, model.writeWeights(weights)), () => versions.replaceBase(step)),
          // Some of the old weights may be overwritten, so that no request can be answered.
          (error) => Effect.sync(() => close(Exit.fail(error))),
        ),
      )
    })

  const models = Effect.sync((): ReadonlyArray<ModelInfo> => [
    { name, base: null, step: versions.baseModel.step, maxLength },
    ...versions.loadedAdapters.map(({ model, step }) => ({ name: model, base: name, step, maxLength })),
  ])
  const status = Effect.sync(() => scheduler.status)

  return {
    generate,
    stream: streamEvents,
    models,
    awaitStep: waiters.await,
    status,
    loadAdapter,
    unloadAdapter,
    loadWeights,
  }
})

/** Returns the error of a program that failed; a defect or an interruption is passed on. */
const failureOf = (cause: Cause.Cause<BackendError>): Effect.Effect<BackendError> => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  return error === undefined ? Effect.orDie(Effect.failCause(cause)) : Effect.succeed(error)
}
