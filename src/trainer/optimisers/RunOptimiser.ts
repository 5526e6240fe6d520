/**
 * Holds one run's optimiser: its compiled program with its moments, and the sum of its gradients. `MultiLoRAOptimizer` has one of
 * these for each run.
 */
import { Effect } from "effect"
import type { Backend, BackendError, Compiling } from "../../tensor/backend/Backend.ts"
import { attempt } from "../../base/config/attempt.ts"
import { GraphError } from "../../tensor/graph/GraphError.ts"
import { zeros } from "../../tensor/graph/initialisers.ts"
import {
  type ParameterLayout,
  layout as layoutOf,
  type NamedArray,
  type NamedTensors,
} from "../../tensor/graph/Parameters.ts"
import { type Shape, sizeOf } from "../../tensor/graph/Tensor.ts"
import type { RunSlot } from "../runs/RunSlot.ts"
import { compileOptimiser, type OptimiserProgram, stepBy } from "./OptimiserProgram.ts"
import { TrainerError } from "../TrainerError.ts"

export interface RunOptimiser {
  readonly slot: RunSlot
  /** The sum of the gradients since the last step. */
  readonly gradient: Float32Array
  /** The number of gradients in the sum. */
  summands: number
  learningRate: number
  /** Updates the parameters by the sum of gradients. Returns the norm of the sum, before it was clipped. */
  readonly step: Effect.Effect<number, TrainerError | BackendError>
  readonly save: Effect.Effect<NamedTensors, BackendError>
  readonly restore: (saved: NamedTensors) => Effect.Effect<void, TrainerError | BackendError>
}

/** The state of a run's optimiser. */
interface OptimiserState extends RunOptimiser, OptimiserProgram {
  /** The parameters by name. Their arrays are updated in place. */
  readonly parameters: NamedTensors
  readonly layout: ParameterLayout
}

/** Compiles the optimiser of a run for its parameters, whose arrays it updates in place. */
export const makeRunOptimiser = Effect.fnUntraced(function* (
  slot: RunSlot,
  parameters: NamedTensors,
): Effect.fn.Return<RunOptimiser, Effect.Error<Compiling<never>>, Effect.Services<Compiling<never>> | Backend> {
  const layout = yield* attempt(
    () => layoutOf(Object.fromEntries(entriesOf(parameters, ({ shape }) => ({ shape, init: zeros })))),
    GraphError,
  )
  const state: OptimiserState = {
    slot,
    parameters,
    layout,
    ...(yield* compileOptimiser(slot.config.optimiser, layout)),
    gradient: new Float32Array(layout.size),
    summands: 0,
    learningRate: slot.config.optimiser.lr,
    step: Effect.suspend(() => step(state)),
    save: Effect.suspend(() => save(state)),
    restore: (saved) => restore(state, saved),
  }
  return state
})

const step = (state: OptimiserState) => {
  const { slot, layout, parameters, gradient, learningRate } = state
  const arrays = layout.names.map((name) => parameters[name].data)
  return stepBy(state, { place: slot.id, parameters: arrays, gradient, learningRate })
}

const save = Effect.fnUntraced(function* ({ program, states, layout }: OptimiserState) {
  const saved: Record<string, NamedArray> = {}
  for (const { name, shape } of states) {
    const data = yield* program.read(name)
    if (isPerParameter(shape, layout))
      for (const [parameter, part] of Object.entries(layout.toNamed(data))) saved[`${name}.${parameter}`] = part
    else saved[name] = { shape, data }
  }
  return saved
})

const restore = Effect.fnUntraced(function* (state: OptimiserState, saved: NamedTensors) {
  const values = yield* attempt(() => valuesIn(state, saved), TrainerError)
  for (const [at, { name }] of state.states.entries()) yield* state.program.write(name, values[at])
  state.gradient.fill(0)
  state.summands = 0
})

/** Returns the numbers of all moments in a saved state. Throws if one is missing, unexpected or damaged. */
const valuesIn = ({ slot, parameters, layout, states }: OptimiserState, saved: NamedTensors) => {
  const { id, config } = slot
  const missing = new Set(Object.keys(saved))
  const take = (name: string, shape: Shape): Float32Array => {
    missing.delete(name)
    return savedPart(id, saved, name, shape)
  }
  const values = states.map(({ name, shape }) => {
    if (!isPerParameter(shape, layout)) return take(name, shape)
    const parts = entriesOf(parameters, (own, parameter) => ({
      shape: own.shape,
      data: take(`${name}.${parameter}`, own.shape),
    }))
    return layout.fromNamed(Object.fromEntries(parts))
  })
  const [unexpected] = missing
  if (unexpected === undefined) return values
  throw TrainerError.at(id, `state "${unexpected}": the optimiser ${config.optimiser.type} has no such state`)
}

/** Returns the numbers of one saved tensor. Throws if it is missing or damaged. */
const savedPart = (id: string, saved: NamedTensors, name: string, shape: Shape): Float32Array => {
  const part = saved[name]
  if (part === undefined) throw TrainerError.at(id, `state "${name}": it is missing`)
  if (part.shape.join() !== shape.join() || part.data.length !== sizeOf(shape))
    throw TrainerError.at(id, `state "${name}": expected shape [${shape.join(", ")}], found [${part.shape.join(", ")}]`)
  const wrong = part.data.find((number) => !Number.isFinite(number))
  if (wrong !== undefined) throw TrainerError.at(id, `state "${name}": expected finite numbers, found ${wrong}`)
  return part.data
}

/** Tells whether a moment has one number for each number of the parameters, so that it can be saved under their names. */
const isPerParameter = (shape: Shape, { size }: ParameterLayout): boolean => shape.length === 1 && shape[0] === size

const entriesOf = <A>(parameters: NamedTensors, of: (parameter: NamedArray, name: string) => A) =>
  Object.entries(parameters).map(([name, parameter]) => [name, of(parameter, name)] as const)
