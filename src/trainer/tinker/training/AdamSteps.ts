/**
 * Updates adapters by AdamW, with settings that each step may change, as Tinker's protocol has it. The programs are those of the
 * multi-run trainer (see `OptimiserProgram.ts`), so the same gradients give the same bits as there. Models with the same settings
 * share a program, into which the moments of a model are written before its step.
 *
 * @example
 * ```ts
 * const steps = yield* makeAdamSteps(parameterLayout)
 * const norm = yield* steps.step(adamState, adamSettings)
 * ```
 */
import { Effect, Exit, Scope, Semaphore } from "effect"
import { Backend, type BackendError, type Compiling } from "../../../tensor/backend/Backend.ts"
import type { ParameterLayout } from "../../../tensor/graph/Parameters.ts"
import { compileOptimiser, type OptimiserProgram, stepBy } from "../../optimisers/OptimiserProgram.ts"
import type { TrainerError } from "../../TrainerError.ts"

export interface AdamSettings {
  readonly learningRate: number
  readonly beta1: number
  readonly beta2: number
  readonly epsilon: number
  readonly weightDecay: number
  /** The largest norm of the gradient; a larger gradient is scaled down to it. 0 sets no limit. */
  readonly maxNorm: number
}

/** The parameters of a model, and the state of its optimiser. */
interface AdamState {
  /** The name of the model, for messages. */
  readonly place: string
  readonly parameters: Float32Array
  readonly first: Float32Array
  readonly second: Float32Array
  /** The number of steps so far. */
  readonly steps: number
  readonly gradient: Float32Array
}

export interface AdamSteps {
  /** Updates the parameters and the moments in place, and returns the norm of the gradient. If it fails, nothing has changed. */
  readonly step: (
    state: AdamState,
    settings: AdamSettings,
  ) => Effect.Effect<number, TrainerError | BackendError | Effect.Error<Compiling<never>>>
}

interface CompiledSettings {
  readonly optimiser: OptimiserProgram
  readonly scope: Scope.Closeable
}

/** The number of compiled programs; of too many, the one that was not used for the longest time is dropped. */
const keptPrograms = 8

/** Makes the function that updates adapters with this layout. */
export const makeAdamSteps = Effect.fnUntraced(function* (
  layout: ParameterLayout,
): Effect.fn.Return<AdamSteps, never, Backend | Scope.Scope> {
  const backend = yield* Backend
  const outer = yield* Scope.Scope
  /** A program has the moments of one model at a time. */
  const alone = yield* Semaphore.make(1)
  const compiled = new Map<string, CompiledSettings>()

  const compile = Effect.fnUntraced(function* ({ beta1, beta2, epsilon, weightDecay, maxNorm }: AdamSettings) {
    const scope = yield* Scope.fork(outer)
    const settings = { type: "adamw", betas: [beta1, beta2], epsilon, momentum: null, weightDecay, maxNorm } as const
    const optimiser = yield* compileOptimiser(settings, layout).pipe(
      Effect.provideService(Backend, backend),
      Effect.provideService(Scope.Scope, scope),
      Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause))),
    )
    return { optimiser, scope }
  })

  const optimiserFor = Effect.fnUntraced(function* (settings: AdamSettings) {
    const { beta1, beta2, epsilon, weightDecay, maxNorm } = settings
    const key = [beta1, beta2, epsilon, weightDecay, maxNorm].join()
    const entry = compiled.get(key) ?? (yield* compile(settings))
    // A map lists the key that was set last at its end.
    compiled.delete(key)
    compiled.set(key, entry)
    for (const [oldest, { scope }] of compiled) {
      if (compiled.size <= keptPrograms) break
      compiled.delete(oldest)
      yield* Scope.close(scope, Exit.void)
    }
    return entry.optimiser
  })

  const step = Effect.fnUntraced(function* (state: AdamState, settings: AdamSettings) {
    const { place, parameters, first, second, steps, gradient } = state
    const optimiser = yield* optimiserFor(settings)
    const { program } = optimiser
    yield* program.write("adamw.first", first)
    yield* program.write("adamw.second", second)
    yield* program.write("adamw.steps", Float32Array.of(steps))
    const { learningRate } = settings
    const norm = yield* stepBy(optimiser, { place, parameters: [parameters], gradient, learningRate })
    yield* program.read("adamw.first", first)
    yield* program.read("adamw.second", second)
    return norm
  })

  return { step: (state, settings) => Effect.uninterruptible(alone.withPermits(1)(step(state, settings))) }
})
