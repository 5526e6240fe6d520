/**
 * Holds the optimisers of all runs of a multi-run trainer: one for each run, made when the run gets its index and dropped
 * when it leaves. Each optimiser has its own program and moments, so a step of one run never changes another run.
 *
 * Between two steps of a run, the trainer adds the gradients of the run's micro-batches with `accumulate`; `step` then
 * updates the runs that are ready and empties their sums. A gradient of a run that has left, or of a run that had the index
 * before, is refused, so a sum never mixes runs.
 *
 * @example
 * ```ts
 * const optimizer = yield* MultiLoRAOptimizer.make({ runs, parametersOf: (slot) => model.namedParametersOf(slot.index) })
 * const scheduler = MultiLoRAScheduler.make(optimizer)
 * // In the loop, for each micro-batch and then for the step:
 * optimizer.accumulate(run, gradient)
 * const outcomes = yield* optimizer.step(ready)
 * scheduler.step(ready)
 * ```
 */
import { Context, Effect, Exit, Scope } from "effect"
import { Backend, type BackendError } from "../../tensor/backend/Backend.ts"
import type { NamedTensors } from "../../tensor/graph/Parameters.ts"
import type { Hook, Hooks, RunSlot } from "../runs/RunSlot.ts"
import { makeRunOptimiser, type RunOptimiser } from "./RunOptimiser.ts"
import { TrainerError } from "../TrainerError.ts"

export interface Options {
  /** The service `Runs`, where the hooks are registered. */
  readonly runs: { readonly register: (hooks: Hooks) => Effect.Effect<void, never, Scope.Scope> }
  /**
   * Returns the parameters of a run, whose arrays the optimiser reads and updates in place: views into the adapters of the
   * model. It is called once, when the run is created, after the run's adapter was made.
   */
  readonly parametersOf: (slot: RunSlot) => NamedTensors
}

/** Identifies a run. The index alone does not, because a later run may get the same index. */
export type RunReference = Pick<RunSlot, "index" | "generation">

/** The result of a step of one run. */
export type StepOutcome =
  | {
      readonly _tag: "Stepped"
      readonly slot: RunSlot
      readonly learningRate: number
      /** The norm of the gradient, before it was clipped. */
      readonly gradientNorm: number
    }
  /** The update changed nothing, because the gradient was not finite or there was none. The run should be evicted. */
  | { readonly _tag: "Failed"; readonly slot: RunSlot; readonly error: TrainerError | BackendError }

/** A function that runs after the optimiser of a run was made. If it fails, the run is evicted. */
export type PostCreation = (optimizer: MultiLoRAOptimizer, slot: RunSlot) => ReturnType<Hook>

export interface MultiLoRAOptimizer {
  /** The runs that have an optimiser, in the order of their indices. */
  readonly slots: () => ReadonlyArray<RunSlot>
  /** Calls a function after each creation of a run's optimiser, in the order of registration. */
  readonly registerPostCreationCallback: (callback: PostCreation) => void
  /**
   * Adds a gradient to the sum of a run. The gradient's numbers are in the order of the run's parameters. Returns false, and
   * adds nothing, if the run has no optimiser, for instance because it was deleted while its micro-batch was computed.
   */
  readonly accumulate: (run: RunReference, gradient: Float32Array) => boolean
  /**
   * Returns the sum of a run's gradients since its last step, or undefined if the run has no optimiser. The array is not
   * copied, so ranks can add their sums to it before a step.
   */
  readonly gradientOf: (run: RunReference) => Float32Array | undefined
  /** Updates the runs whose step is complete, in the order of their indices, and empties their sums. */
  readonly step: (ready: ReadonlyArray<RunReference>) => Effect.Effect<ReadonlyArray<StepOutcome>>
  readonly learningRateOf: (run: RunReference) => number | undefined
  /** Sets the learning rate of a run's next steps. Returns false if the run has no optimiser. */
  readonly setLearningRate: (run: RunReference, learningRate: number) => boolean
  /** Returns copies of the moments of a run, by name, for its checkpoint. The sum of gradients is not saved. */
  readonly stateDictOf: (run: RunReference) => Effect.Effect<NamedTensors, TrainerError | BackendError>
  /** Replaces the moments of a run by saved ones. Fails, and changes nothing, if names, shapes or numbers do not fit. */
  readonly loadStateDict: (run: RunReference, saved: NamedTensors) => Effect.Effect<void, TrainerError | BackendError>
}

/** Makes the service, and registers the hooks that make and drop the optimiser of each run, until the scope closes. */
export const make = Effect.fnUntraced(function* ({
  runs,
  parametersOf,
}: Options): Effect.fn.Return<MultiLoRAOptimizer, never, Backend | Scope.Scope> {
  const backend = yield* Backend
  const outer = yield* Scope.Scope
  const entries = new Map<number, { readonly optimiser: RunOptimiser; readonly scope: Scope.Closeable }>()
  const callbacks: Array<PostCreation> = []

  const find = ({ index, generation }: RunReference): RunOptimiser | undefined => {
    const optimiser = entries.get(index)?.optimiser
    return optimiser?.slot.generation === generation ? optimiser : undefined
  }
  const get = (run: RunReference): Effect.Effect<RunOptimiser, TrainerError> => {
    const optimiser = find(run)
    if (optimiser !== undefined) return Effect.succeed(optimiser)
    return Effect.fail(TrainerError.at(`run ${run.index}, generation ${run.generation}`, "it has no optimiser"))
  }
  const sorted = (): ReadonlyArray<RunOptimiser> =>
    [...entries.values()].map(({ optimiser }) => optimiser).sort((a, b) => a.slot.index - b.slot.index)

  const remove = Effect.fnUntraced(function* ({ index, generation }: RunReference) {
    const entry = entries.get(index)
    if (entry === undefined || entry.optimiser.slot.generation !== generation) return
    entries.delete(index)
    yield* Scope.close(entry.scope, Exit.void)
  })

  const optimizer: MultiLoRAOptimizer = {
    slots: () => sorted().map(({ slot }) => slot),
    registerPostCreationCallback: (callback) => void callbacks.push(callback),
    accumulate: (run, gradient) => {
      const optimiser = find(run)
      if (optimiser === undefined) return false
      const { gradient: sum } = optimiser
      if (gradient.length !== sum.length)
        throw new RangeError(`gradient: expected ${sum.length} numbers, found ${gradient.length}`)
      for (let at = 0; at < sum.length; at++) sum[at] += gradient[at]
      optimiser.summands++
      return true
    },
    gradientOf: (run) => find(run)?.gradient,
    step: (ready) =>
      Effect.forEach(
        ready.flatMap((run) => find(run) ?? []).sort((a, b) => a.slot.index - b.slot.index),
        stepOf,
      ),
    learningRateOf: (run) => find(run)?.learningRate,
    setLearningRate: (run, learningRate) => {
      const optimiser = find(run)
      if (optimiser !== undefined) optimiser.learningRate = learningRate
      return optimiser !== undefined
    },
    stateDictOf: (run) => Effect.flatMap(get(run), ({ save }) => save),
    loadStateDict: (run, saved) => Effect.flatMap(get(run), ({ restore }) => restore(saved)),
  }

  const create = Effect.fnUntraced(function* (slot: RunSlot, scope: Scope.Closeable) {
    const services = Context.make(Backend, backend).pipe(Context.add(Scope.Scope, scope))
    const optimiser = yield* Effect.provideContext(makeRunOptimiser(slot, parametersOf(slot)), services)
    entries.set(slot.index, { optimiser, scope })
    for (const callback of callbacks) yield* callback(optimizer, slot)
  })
  // A creation that fails or is interrupted leaves no optimiser behind.
  const createOrUndo = (slot: RunSlot) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(Scope.fork(outer), (scope) =>
        Effect.onExit(restore(create(slot, scope)), (exit) =>
          Exit.isSuccess(exit) ? Effect.void : Effect.andThen(remove(slot), Scope.close(scope, Exit.void)),
        ),
      ),
    )

  yield* runs.register({ creation: createOrUndo, deletion: remove })
  return optimizer
})

const stepOf = (optimiser: RunOptimiser): Effect.Effect<StepOutcome> => {
  const { slot, learningRate } = optimiser
  const { id } = slot
  const result =
    optimiser.summands === 0
      ? Effect.fail(TrainerError.at(id, "gradient: expected one since the last step, found none"))
      : optimiser.step
  return result.pipe(
    Effect.match({
      onFailure: (error): StepOutcome => ({ _tag: "Failed", slot, error }),
      onSuccess: (gradientNorm): StepOutcome => ({ _tag: "Stepped", slot, learningRate, gradientNorm }),
    }),
    Effect.ensuring(
      Effect.sync(() => {
        optimiser.gradient.fill(0)
        optimiser.summands = 0
      }),
    ),
  )
}
