/** Makes an `Engine` from a model that computes steps. A fiber runs steps while there is work, and sleeps otherwise. */
import { Cause, Deferred, Effect, Exit, Option, Queue, Schema, type Scope, Stream } from "effect"
import type { BackendError } from "../../tensor/backend/Backend.ts"
import { attempt } from "../../base/config/attempt.ts"
import { messageOf } from "../../base/text/text.ts"
import { stream } from "../../base/rng/Rng.ts"
import type {
  Embedded,
  EmbedRequest,
  EngineService,
  Generated,
  GenerateEvent,
  GenerateRequest,
  ModelInfo,
} from "./EngineService.ts"
import { EngineError, engineError } from "./EngineError.ts"
import { closeEngine, type EngineOptions, type EngineState, makeEngineState } from "./EngineState.ts"
import { HiddenPool } from "./HiddenPool.ts"
import { EngineJob } from "./Job.ts"
import { Sampling } from "./Sampling.ts"
import type { StepModel } from "./StepModel.ts"
import { always, loadAdapter, loadWeights, makeChanges, unloadAdapter } from "./weightChanges.ts"

const decodeSampling = Schema.decodeUnknownEffect(Sampling, { errors: "first", onExcessProperty: "error" })

/** Makes the engine, whose loop of steps runs until the scope closes. */
export const makeEngine = Effect.fnUntraced(function* (
  model: StepModel,
  options: EngineOptions,
): Effect.fn.Return<EngineService, never, Scope.Scope> {
  const state = makeEngineState(model, options)
  const { name, versions, scheduler, maxLength } = state
  yield* Effect.addFinalizer(() =>
    Effect.sync(() =>
      closeEngine(
        state,
        Exit.fail(engineError(name, "closed", "the engine was closed before the request was complete")),
      ),
    ),
  )
  yield* Effect.forever(runStep(state)).pipe(
    // Only a defect ends the loop. Then all requests end with it, instead of waiting for ever.
    Effect.onError((cause) =>
      Effect.sync(() => (Cause.hasInterruptsOnly(cause) ? undefined : closeEngine(state, Exit.failCause(cause)))),
    ),
    Effect.forkScoped,
  )

  const models = Effect.sync((): ReadonlyArray<ModelInfo> => [
    { name, base: null, step: versions.baseModel.step, maxLength },
    ...versions.loadedAdapters.map(({ model, step }) => ({ name: model, base: name, step, maxLength })),
  ])
  return {
    generate: (request) => generate(state, request),
    stream: (request) => streamEvents(state, request),
    ...(model.embedding.length === 0
      ? {}
      : { embedder: { size: model.hiddenSize, embed: (request: EmbedRequest) => embed(state, request) } }),
    models,
    awaitStep: state.waiters.await,
    status: Effect.sync(() => scheduler.status),
    loadAdapter: (loaded) => loadAdapter(state, loaded),
    unloadAdapter: (adapterName) => unloadAdapter(state, adapterName),
    loadWeights: (loaded) => loadWeights(state, loaded),
  }
})

/** Makes the changes of weights that are possible now, and computes one step. Sleeps if there is nothing to do. */
const runStep = Effect.fnUntraced(function* (state: EngineState) {
  const { changes, scheduler, steps, work } = state
  // Close the latch first: a request that ends below may resume its caller at once, and the caller may add work.
  work.closeUnsafe()
  const mayBegin = changes.length === 0 ? always : yield* makeChanges(state)
  // A change of the weights must not wait for the latch, because its caller may have closed it. So the requests for whose end
  // the change waits continue.
  if (steps !== undefined && !steps.isOpen() && changes.length === 0)
    return yield* Effect.raceFirst(steps.await, work.await)
  const planned = scheduler.plan(mayBegin)
  if (planned === null) return yield* work.await
  const exit = yield* Effect.exit(planned.program.run)
  if (Exit.isSuccess(exit)) scheduler.apply(planned)
  else scheduler.fail((yield* failureOf(exit.cause)).message)
  // Let the fibers of the requests run between the steps.
  yield* Effect.yieldNow
})

/** The reason why an engine refuses a request. */
interface Refusal extends Pick<EngineError, "reason" | "part"> {
  readonly problem: string
}

/** Returns why an engine refuses a prompt and its settings; undefined if it accepts them. */
const promptProblem = (
  { model, maxLength }: EngineState,
  promptIds: ArrayLike<number>,
  { stopTokenIds, logitBias, maxTokens, promptLogprobs }: Sampling,
  pool: HiddenPool | undefined,
): Refusal | undefined => {
  const { length } = promptIds
  if (length === 0) return { reason: "invalidRequest", problem: "the prompt is empty; expected one token or more" }
  if (maxTokens === 0 && promptLogprobs === null && pool === undefined) {
    const problem =
      "maxTokens: expected 1 or more, since the request asks for no log-probabilities of the prompt; found 0"
    return { reason: "invalidRequest", problem }
  }
  const least = maxTokens === 0 ? 0 : 1
  if (length > maxLength - least) {
    const problem = `the prompt has ${length} tokens; expected at most ${maxLength - least}, as prompt and answer together`
    return { reason: "promptTooLong", problem: `${problem} have room for ${maxLength}` }
  }
  const isToken = (id: number): boolean => Number.isInteger(id) && id >= 0 && id < model.vocabSize
  for (let at = 0; at < length; at++) {
    if (isToken(promptIds[at])) continue
    const problem = `token ${at} of the prompt: expected an id from 0 to ${model.vocabSize - 1}, found ${promptIds[at]}`
    return { reason: "tokenOutOfRange", problem }
  }
  const wrong = stopTokenIds.find((id) => !isToken(id))
  if (wrong !== undefined) {
    const problem = `stopTokenIds: expected ids from 0 to ${model.vocabSize - 1}, found ${wrong}`
    return { reason: "tokenOutOfRange", part: "stopTokenIds", problem }
  }
  const wrongBias = logitBias.find(([id]) => !isToken(id))
  if (wrongBias !== undefined) {
    const problem = `logitBias: expected ids from 0 to ${model.vocabSize - 1}, found ${wrongBias[0]}`
    return { reason: "tokenOutOfRange", part: "logitBias", problem }
  }
  return undefined
}

/** Checks a request, and adds it to the waiting ones. */
const submit = Effect.fnUntraced(function* (
  state: EngineState,
  { model: modelName, promptIds, sampling: options = {} }: GenerateRequest,
  { pool, ...hooks }: Pick<ConstructorParameters<typeof EngineJob>[0], "onEvent" | "onEnd" | "pool">,
): Effect.fn.Return<EngineJob, EngineError> {
  const { versions, scheduler, maxLength } = state
  if (state.closed !== null) return yield* state.closed
  const refuse = (reason: EngineError["reason"], problem: string): EngineError =>
    engineError(modelName, reason, problem)
  if (versions.find(modelName) === undefined) {
    const names = [state.name, ...versions.loadedAdapters.map(({ model }) => model)]
    return yield* refuse("unknownModel", `there is no such model; expected one of ${names.join(", ")}`)
  }
  const sampling = yield* Effect.mapError(decodeSampling(options), (error) =>
    refuse("invalidRequest", `sampling: ${messageOf(error)}`),
  )
  const refusal = promptProblem(state, promptIds, sampling, pool)
  if (refusal !== undefined) {
    const { reason, problem, ...part } = refusal
    return yield* new EngineError({ reason, model: modelName, message: `${modelName}: ${problem}`, ...part })
  }
  const format = yield* attempt(() => state.formats.ofAnswer(sampling), EngineError)
  const job = new EngineJob({
    order: state.arrived++,
    model: modelName,
    promptIds,
    sampling,
    seed: sampling.seed ?? stream(state.seed, "request", state.unseeded++).uint32(),
    eosIds: state.eosIds,
    maxLength: Math.min(maxLength, promptIds.length + (sampling.maxTokens ?? maxLength)),
    detokenizer: state.tokenizer,
    format,
    pool,
    routedExperts: state.model.routedExperts,
    ...hooks,
  })
  scheduler.add(job)
  state.work.openUnsafe()
  return job
})

const cancel = (state: EngineState, job: EngineJob): Effect.Effect<void> =>
  Effect.sync(() => state.scheduler.end(job, Exit.interrupt()))

const generate = (
  state: EngineState,
  request: GenerateRequest,
  pool?: HiddenPool,
): Effect.Effect<Generated, EngineError> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      const done = Deferred.makeUnsafe<Generated, EngineError>()
      return Effect.flatMap(submit(state, request, { onEnd: (exit) => Deferred.doneUnsafe(done, exit), pool }), (job) =>
        Effect.onInterrupt(restore(Deferred.await(done)), () => cancel(state, job)),
      )
    }),
  )

/** Computes an embedding: a request for no tokens, whose hidden states a pool collects. */
const embed = (state: EngineState, { model, promptIds, pooling }: EmbedRequest): Effect.Effect<Embedded, EngineError> =>
  Effect.suspend(() => {
    const pool = new HiddenPool(pooling, state.model.hiddenSize)
    // The seed draws nothing here; without it, a request for an embedding would change the seeds of later requests.
    const sampling = { maxTokens: 0, seed: 0 }
    return Effect.map(generate(state, { model, promptIds, sampling }, pool), ({ weights }) => ({
      embedding: pool.vector(),
      weights,
    }))
  })

const streamEvents = (state: EngineState, request: GenerateRequest): Stream.Stream<GenerateEvent, EngineError> =>
  Stream.callback((queue) => {
    const hooks = {
      onEvent: (event: GenerateEvent) => Queue.offerUnsafe(queue, event),
      onEnd: (exit: Exit.Exit<Generated, EngineError>) =>
        Exit.isSuccess(exit) ? Queue.endUnsafe(queue) : Queue.failCauseUnsafe(queue, exit.cause),
    }
    return Effect.matchCauseEffect(
      Effect.acquireRelease(submit(state, request, hooks), (job) => cancel(state, job)),
      {
        onFailure: (cause) => Queue.failCause(queue, cause),
        onSuccess: () => Effect.void,
      },
    )
  })

/** Returns the error of a failed program. A defect or an interruption is passed on. */
const failureOf = (cause: Cause.Cause<BackendError>): Effect.Effect<BackendError> => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  return error === undefined ? Effect.orDie(Effect.failCause(cause)) : Effect.succeed(error)
}
