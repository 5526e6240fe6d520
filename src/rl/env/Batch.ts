/**
 * Steps many copies of one env together, in this thread, and writes the results to flat arrays with one row per env.
 * All its random numbers come from the seed that `reset` gets. Training, validation and the threads of `EnvPool` use
 * it.
 *
 * @example
 * ```ts
 * import { Batch, CartPole } from "effect-rl"
 *
 * const envs = Batch.make(CartPole.env, 8)
 * envs.reset(1, "env")
 * envs.step(new Int32Array(8))
 * envs.observations // 8 × 4 numbers
 * ```
 */
import { Effect, type Scope } from "effect"
import { attempt } from "../../base/config/attempt.ts"
import type { Stream } from "../../base/rng/Rng.ts"
import type { AsyncBatchEnv, BatchEnv, EnvBatchOptions, Snapshot } from "./BatchEnv.ts"
import { type ActionOf, type Env, rowSpaceOf, type EnvTransition } from "./Env.ts"
import { EnvError, invalid } from "../../base/EnvError.ts"
import { messageOf, oneLine } from "../../base/text/text.ts"
import { batchOf, errorAt, type KernelArrays, type EnvKernel, streamsOf } from "./internal/episodes.ts"
import { maskWriter } from "./internal/rows.ts"
import { fromText, NotPlain, toText } from "./internal/plainData.ts"
import { writerOf } from "./internal/values.ts"
import { type ActionSpace, display as displayedSpace, sizeOf } from "./Space.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { display } from "../../base/config/Config.ts"

export interface PartialBatchOptions extends Partial<Omit<EnvBatchOptions, "maxSteps">> {}

/**
 * Makes a batch of any env. It uses the env's own `batch` if there is one that supports the options, otherwise it calls
 * the env's `reset`, `observe` and `step` for each copy.
 *
 * All random numbers of episode k of env i come from the stream (seed, ...path, firstIndex + i, "episode", k); `reset`
 * receives the seed and the path. So an episode depends neither on the other envs nor on their number.
 */
export const make = (env: Env, numEnvs: number, options: PartialBatchOptions = {}): BatchEnv => {
  const fast = env.batch?.(numEnvs, complete(env, numEnvs, options))
  if (fast === undefined) return oneByOne(env, numEnvs, options)
  const rowSpace = rowSpaceOf(env)
  if (fast.observationSize === sizeOf(rowSpace)) return fast
  const expected = `${sizeOf(rowSpace)} numbers, for ${displayedSpace(rowSpace)}`
  throw invalid(env.id, `its own batch has rows of ${fast.observationSize} numbers; expected ${expected}`)
}

/**
 * Opens a batch of any env: `make` makes the batch, except for an env that runs elsewhere (`env.open`), where the
 * functions of the batch are Effects. Closing the scope ends its processes or connections.
 */
export const open = (
  env: Env,
  numEnvs: number,
  options: PartialBatchOptions = {},
): Effect.Effect<BatchEnv | AsyncBatchEnv, EnvError, Scope.Scope> =>
  Effect.flatMap(
    Effect.andThen(
      env.prepare ?? Effect.void,
      attempt(() => complete(env, numEnvs, options), EnvError),
    ),
    (all): Effect.Effect<BatchEnv | AsyncBatchEnv, EnvError, Scope.Scope> =>
      env.open?.(numEnvs, all) ?? attempt(() => make(env, numEnvs, options), EnvError),
  )

/** Makes a batch that calls the env's own functions for each copy, even if the env has a `batch`. */
export const oneByOne = (env: Env, numEnvs: number, options: PartialBatchOptions = {}): BatchEnv =>
  batchOf(env, numEnvs, complete(env, numEnvs, options), (columns) => pureKernel(env, columns))

const complete = (env: Env, numEnvs: number, options: PartialBatchOptions): EnvBatchOptions => {
  const { autoReset = "same-step", firstIndex = 0, arrays } = options
  if (!Number.isInteger(numEnvs) || numEnvs < 1) {
    throw invalid(env.id, `numEnvs: expected a whole number from 1, found ${numEnvs}`)
  }
  return { autoReset, firstIndex, maxSteps: env.maxSteps, arrays }
}

/** Returns a hint for error messages if the env returned a Promise: a batch steps synchronously and cannot await it. */
const asyncHint = (value: unknown): string => (value instanceof Promise ? " (it must not be async)" : "")

const isList = (value: unknown): value is ArrayLike<number> =>
  typeof value === "object" && value !== null && "length" in value

/** The envs of a batch: their states, and the helpers that call the env's functions and write rows. */
interface PureEnvs {
  readonly env: Env
  readonly columns: KernelArrays
  /** The length of an observation, and (`rowSize`) of a row, which also has the mask, if there is one. */
  readonly size: number
  readonly rowSize: number
  readonly isBox: boolean
  readonly write: ReturnType<typeof writerOf>
  readonly writeMask: ReturnType<typeof maskWriter>
  readonly actionAt: ReturnType<typeof actionReader>
  readonly states: Array<unknown>
  readonly streams: ReturnType<typeof streamsOf>
}

/** Makes the kernel (it holds and steps the states, see `internal/episodes.ts`) that calls the env's own functions. */
const pureKernel = (env: Env, columns: KernelArrays): EnvKernel => {
  const envs: PureEnvs = {
    env,
    columns,
    size: sizeOf(env.observationSpace),
    rowSize: sizeOf(rowSpaceOf(env)),
    isBox: env.observationSpace._tag === "Box",
    write: writerOf(env.observationSpace, "observation"),
    writeMask: maskWriter(env),
    actionAt: actionReader(env.actionSpace),
    states: [],
    streams: streamsOf(env.id, columns.numEnvs),
  }
  return {
    start: (index, random) => start(envs, index, random),
    advance: (actions, waiting) => advance(envs, actions, waiting),
    stateAt: (index) => envs.states[index],
    save: () => save(envs),
    load: (saved, streamOf) => load(envs, saved, streamOf),
  }
}

const failAt = ({ env, columns }: PureEnvs, index: number, step: number, message: string, userStack?: string) =>
  errorAt(env.id, index, columns.episodes[index], step, message, userStack)

/** Makes the error for an exception that the env threw in `doing`: `reset`, `observe`, `step` or `actionMask`. */
const threw = (envs: PureEnvs, index: number, step: number, doing: string, error: unknown): EnvError => {
  // An EnvError with an index comes from the checks below, and already names the env and the step.
  if (error instanceof EnvError && error.index !== undefined) return error
  const isForeign = error instanceof Error && !(error instanceof EnvError)
  const what = isForeign ? `${error.name}: ${error.message}` : messageOf(error)
  const stack = error instanceof Error ? error.stack : undefined
  return failAt(envs, index, step, `${doing} threw ${oneLine(what)}`, stack)
}

/** Checks an observation and writes it to the env's row. */
const storeObservation = (envs: PureEnvs, index: number, step: number, seen: unknown): void => {
  const { size, rowSize } = envs
  const { observations } = envs.columns
  if (!envs.isBox) {
    const problem = envs.write(seen, observations, index * rowSize)
    if (problem !== undefined) throw failAt(envs, index, step, `${problem}${asyncHint(seen)}`)
    return
  }
  if (!isList(seen) || seen.length !== size) {
    const description = isList(seen) ? `${String(seen.length)} numbers` : `${display(seen)}${asyncHint(seen)}`
    throw failAt(envs, index, step, `observe returned ${description}, the observation space wants an array of ${size}`)
  }
  const offset = index * rowSize
  let zero = 0
  for (let at = 0; at < size; at++) {
    observations[offset + at] = seen[at]
    // Subtracting a number from itself gives 0 for finite numbers, and NaN for NaN and the infinities.
    zero += observations[offset + at] - observations[offset + at]
  }
  if (zero === 0) return
  const wrong = Array.from(seen).findIndex((element) => !Number.isFinite(Math.fround(element)))
  throw failAt(envs, index, step, `observation element ${wrong} is ${display(seen[wrong])}, not a finite number`)
}

/** Writes the action mask of a state to the env's row, if the env has masks. */
const storeMask = (envs: PureEnvs, index: number, step: number, state: unknown, isOver: boolean): void => {
  const problem = envs.writeMask?.(state, isOver, envs.columns.observations, index * envs.rowSize + envs.size)
  if (problem !== undefined) throw failAt(envs, index, step, problem)
}

const start = (envs: PureEnvs, index: number, random: Stream): void => {
  const { env } = envs
  envs.streams.streams[index] = random
  let doing = "reset"
  try {
    const state = env.reset(random)
    if (state instanceof Promise) {
      throw failAt(envs, index, 0, `reset returned ${display(state)}${asyncHint(state)}`)
    }
    envs.states[index] = state
    doing = "observe"
    storeObservation(envs, index, 0, env.observe(state))
    doing = "actionMask"
    storeMask(envs, index, 0, state, false)
  } catch (error) {
    throw threw(envs, index, 0, doing, error)
  }
}

const storeTransition = (envs: PureEnvs, index: number, transition: EnvTransition<unknown>): void => {
  const { rewards, terminated, truncated, diverged, elapsed } = envs.columns
  if (typeof transition !== "object" || transition === null || transition instanceof Promise) {
    const description = `${display(transition)}${asyncHint(transition)}`
    const problem = `step returned ${description}, not { state, reward, terminated }`
    throw failAt(envs, index, elapsed[index] + 1, problem)
  }
  const { reward, terminated: ended, truncated: cut } = transition
  rewards[index] = reward
  if (!Number.isFinite(rewards[index]) || typeof reward !== "number") {
    throw failAt(envs, index, elapsed[index] + 1, `reward is ${display(reward)}, not a finite number`)
  }
  if (typeof ended !== "boolean") {
    throw failAt(envs, index, elapsed[index] + 1, `terminated is ${display(ended)}, not a boolean`)
  }
  envs.states[index] = transition.state
  terminated[index] = ended ? 1 : 0
  if (cut === true) truncated[index] = 1
  if (transition.diverged === true) diverged[index] = 1
}

const advance = (envs: PureEnvs, actions: Float32Array | Int32Array, waiting: Uint8Array): void => {
  const { env, states, actionAt } = envs
  const { streams } = envs.streams
  const { numEnvs, elapsed, terminated } = envs.columns
  let index = 0
  let doing = "step"
  try {
    for (; index < numEnvs; index++) {
      if (waiting[index] !== 0) continue
      doing = "step"
      storeTransition(envs, index, env.step(states[index], actionAt(actions, index), streams[index]))
      doing = "observe"
      storeObservation(envs, index, elapsed[index] + 1, env.observe(states[index]))
      if (envs.writeMask === undefined) continue
      doing = "actionMask"
      storeMask(envs, index, elapsed[index] + 1, states[index], terminated[index] !== 0)
    }
  } catch (error) {
    throw threw(envs, index, elapsed[index] + 1, doing, error)
  }
}

const save = ({ env, states, streams }: PureEnvs): Snapshot => {
  try {
    return { states: utf8.encode(toText(states)), ...streams.save() }
  } catch (error) {
    if (!(error instanceof NotPlain)) throw error
    throw invalid(env.id, `a snapshot needs a state of plain data, but ${error.path} is ${error.kind}`)
  }
}

const load = ({ env, columns, states, streams }: PureEnvs, saved: Snapshot, streamOf: (index: number) => Stream) => {
  const { numEnvs } = columns
  const text = saved["states"]
  const decoded = text instanceof Uint8Array ? fromText(utf8.decode(text)) : undefined
  if (!Array.isArray(decoded) || decoded.length !== numEnvs) {
    throw invalid(env.id, `the snapshot doesn't fit: it has no ${numEnvs} states`)
  }
  streams.load(saved, streamOf)
  for (let index = 0; index < numEnvs; index++) states[index] = decoded[index]
}

/** Returns a function that reads the action of one env. A list is a new array, since an env may keep it. */
export const actionReader = (
  space: ActionSpace,
): ((actions: Float32Array | Int32Array, index: number) => ActionOf<ActionSpace>) => {
  if (space._tag === "Discrete") return (actions, index) => actions[index]
  const size = sizeOf(space)
  return (actions, index) => {
    const action: Array<number> = []
    for (let at = 0; at < size; at++) action.push(actions[index * size + at])
    return action
  }
}
