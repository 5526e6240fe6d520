import { Effect } from "effect"
import type { Backend, BackendError, Program } from "../backend/Backend.ts"
import { EnvError } from "../env/EnvError.ts"
import type { GraphError } from "../graph/GraphError.ts"
import { toOnnx } from "../graph/onnx/export.ts"
import type { Layout } from "../graph/Parameters.ts"
import type { ProgramSpec } from "../graph/Program.ts"
import { sizeOf } from "../graph/Tensor.ts"
import { LearningError, type LearnerState, type NamedArrays, type NamedTensors, type Policy } from "./Algorithm.ts"
import { build } from "./build.ts"

/** Helpers of learners: they compile and export the policy, and save and restore the state of a learner. */

/** Compiles a policy that takes its weights from a learner. The policy's memory, if it has one, begins as zeros. */
export const learnerPolicy = Effect.fnUntraced(function* (
  backend: Backend["Service"],
  specOf: () => ProgramSpec,
  weights: Effect.Effect<Float32Array, BackendError>,
) {
  const spec = yield* build(specOf)
  const program = yield* backend.compile(spec)
  const { actions } = program.results
  const { observations, noise } = program.feeds
  if (!(observations instanceof Float32Array) || actions instanceof Uint8Array) {
    return yield* Effect.die(new TypeError("a policy maps float32 observations to numbers"))
  }
  const memories = Object.entries(spec.state).filter(([name]) => name !== "theta")
  const refresh = Effect.gen(function* () {
    yield* program.write("theta", yield* weights)
    for (const [name, { tensor }] of memories) yield* program.write(name, new Float32Array(sizeOf(tensor.shape)))
  })
  return {
    program,
    observations,
    noise: noise instanceof Float32Array ? noise : undefined,
    actions,
    refresh,
  } satisfies Policy
})

type NamedVector = NamedArrays[string]

/** Encodes a policy with its weights as an ONNX model. */
export const onnxPolicy = (
  specOf: () => ProgramSpec,
  weights: Effect.Effect<Float32Array, BackendError>,
): Effect.Effect<Uint8Array, GraphError | BackendError> =>
  Effect.flatMap(weights, (theta) => build(() => toOnnx(specOf(), { weightsAsInitializers: { theta } })))

export const namedVector = <A extends NamedArrays[string]["data"]>(
  data: A,
): { readonly shape: ReadonlyArray<number>; readonly data: A } => ({ shape: [data.length], data })

/** Returns the array of this name; throws unless it holds real numbers. */
export const floatsOf = (columns: Readonly<Record<string, unknown>>, name: string): Float32Array => {
  const column = columns[name]
  if (column instanceof Float32Array) return column
  throw new TypeError(`${name}: expected a Float32Array`)
}

/** Returns functions that read and restore the states of a program, except for those that are saved elsewhere. */
export const statesOf = (program: Program, spec: ProgramSpec, elsewhere: ReadonlyArray<string>, prefix = "") => {
  const keys = Object.keys(spec.state).filter((key) => !elsewhere.includes(key))
  const shapeOf = (key: string): ReadonlyArray<number> => spec.state[key].tensor.shape
  return {
    read: Effect.gen(function* () {
      const named: Record<string, NamedVector> = {}
      for (const key of keys) named[`${prefix}${key}`] = { shape: shapeOf(key), data: yield* program.read(key) }
      return named
    }),
    restore: (files: SavedState, file: string) =>
      Effect.forEach(keys, (key) =>
        Effect.flatMap(files.floats(file, `${prefix}${key}`, shapeOf(key)), (data) => program.write(key, data)),
      ),
  }
}

/** The arrays of a checkpoint, from which a learner reads by file, name and shape. */
export interface SavedState {
  readonly weights: (layout: Layout, named: NamedTensors) => Effect.Effect<Float32Array, LearningError>
  readonly floats: (
    file: string,
    name: string,
    shape: ReadonlyArray<number>,
  ) => Effect.Effect<Float32Array, LearningError>
  /** Passes a whole file to a function that restores something, and throws a Misfit if it does not fit. */
  readonly use: (file: string, restore: (arrays: NamedArrays) => void) => Effect.Effect<void, LearningError>
}

/** An array of a checkpoint is missing, or does not fit the learner. */
export class Misfit extends Error {}

export const restoreState = (
  body: (files: SavedState) => Generator<Effect.Effect<unknown, LearningError | BackendError>, void, never>,
  saved: LearnerState,
): Effect.Effect<void, LearningError | BackendError> => {
  const misfit = (message: string): LearningError => new LearningError({ message })
  const missingFile = (file: string): string => `${file}: the file is missing from the checkpoint`
  return Effect.gen(() =>
    body({
      weights: (layout, named) =>
        Effect.mapError(
          build(() => layout.fromNamed(named)),
          (error) => misfit(error.message),
        ),
      floats: (file, name, shape) => {
        if (saved[file] === undefined) return Effect.fail(misfit(missingFile(file)))
        const array = saved[file][name]
        if (array === undefined) return Effect.fail(misfit(`${file}: "${name}" is missing`))
        if (!(array.data instanceof Float32Array) || array.shape.join() !== shape.join()) {
          const actual = `${array.data.constructor.name} of shape [${array.shape.join(", ")}]`
          return Effect.fail(
            misfit(`${file}: "${name}": expected a Float32Array of shape [${shape.join(", ")}], found a ${actual}`),
          )
        }
        return Effect.succeed(array.data)
      },
      use: (file, restore) =>
        Effect.suspend(() => {
          try {
            if (saved[file] === undefined) return Effect.fail(misfit(missingFile(file)))
            return Effect.succeed(restore(saved[file]))
          } catch (error) {
            const expected = error instanceof Misfit || error instanceof EnvError
            return expected ? Effect.fail(misfit(`${file}: ${error.message}`)) : Effect.die(error)
          }
        }),
    }),
  )
}

/** Copies an array of a checkpoint into an existing one of the same kind and length; throws a Misfit otherwise. */
export const copyInto = (
  arrays: NamedArrays,
  name: string,
  into: Float32Array | Float64Array | Int32Array | Uint8Array,
): void => {
  const array = arrays[name]
  if (array === undefined) throw new Misfit(`"${name}" is missing`)
  if (array.data.length !== into.length || array.data.constructor !== into.constructor) {
    const sizeOf = ({ length, constructor }: NamedVector["data"]): string => `${length} × ${constructor.name}`
    throw new Misfit(`"${name}": expected ${sizeOf(into)}, found ${sizeOf(array.data)}`)
  }
  into.set(array.data)
}
