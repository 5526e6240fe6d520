/**
 * Turns the state of a learner into the arrays of a checkpoint, and restores it from them. Learners use it. It works on
 * arrays in memory; `src/rl/train/checkpointing.ts` makes files of them, and `resume.ts` reads the files.
 */
import { Effect, Record } from "effect"
import type { Program } from "../../tensor/backend/Backend.ts"
import { attempt } from "../../base/config/attempt.ts"
import { EnvError } from "../../base/EnvError.ts"
import type { ParameterLayout, NamedArrays, NamedTensors } from "../../tensor/graph/Parameters.ts"
import type { ProgramSpec } from "../../tensor/graph/Program.ts"
import { LearningError, type LearnerState } from "./Learner.ts"
import { build } from "./graphs.ts"

type NamedVector = NamedArrays[string]

/** Returns an array with its shape, [length], which checkpoints store too. */
export const namedVector = <A extends NamedArrays[string]["data"]>(
  data: A,
): { readonly shape: ReadonlyArray<number>; readonly data: A } => ({ shape: [data.length], data })

/** Returns `state`, which names these vectors for a checkpoint, and `restore`, which copies saved vectors into them. */
export const vectorsOf = (vectors: Readonly<Record<string, NamedVector["data"]>>) => ({
  state: (): NamedArrays => Record.map(vectors, namedVector),
  restore: (arrays: NamedArrays): void => {
    for (const [name, into] of Object.entries(vectors)) copyInto(arrays, name, into)
  },
})

/** Returns the array of this name; throws a TypeError unless it is a Float32Array. */
export const floatsOf = (columns: Readonly<Record<string, unknown>>, name: string): Float32Array => {
  const column = columns[name]
  if (column instanceof Float32Array) return column
  throw new TypeError(`${name}: expected a Float32Array`)
}

/** Returns the array of this name; throws a TypeError unless it is a Float32Array or an Int32Array. */
export const numbersOf = (columns: Readonly<Record<string, unknown>>, name: string): Float32Array | Int32Array => {
  const column = columns[name]
  if (column instanceof Float32Array || column instanceof Int32Array) return column
  throw new TypeError(`${name}: expected a Float32Array or an Int32Array`)
}

/**
 * Returns functions that read the states of a compiled program for a checkpoint, such as the moments of its optimiser,
 * and restore them. They leave out the states named in `elsewhere`, such as weights, which the caller saves. `prefix`
 * is put before the states' names in the checkpoint.
 */
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

/** Joins weights to a flat vector. A missing or wrong parameter is a LearningError. */
export const weightsIn = (layout: ParameterLayout, named: NamedTensors): Effect.Effect<Float32Array, LearningError> =>
  Effect.mapError(
    build(() => layout.fromNamed(named)),
    ({ message }) => new LearningError({ message }),
  )

/** Reports a missing or unfit array of a checkpoint. `savedState` turns this exception into a LearningError. */
export const misfit = (message: string): LearningError => new LearningError({ message })

/**
 * Returns functions that read a checkpoint's arrays: `use` passes on all arrays of a file, `floats` returns one array,
 * and `weights` joins weights to a flat vector. A missing or wrong array is a LearningError.
 */
export const savedState = (saved: LearnerState) => {
  /** Passes the arrays of a file to `read`, which throws a LearningError if they do not fit, and returns its result. */
  const use = <A>(file: string, read: (arrays: NamedArrays) => A): Effect.Effect<A, LearningError> =>
    saved[file] === undefined
      ? Effect.fail(misfit(`${file}: the file is missing from the checkpoint`))
      : Effect.mapError(
          attempt(() => read(saved[file]), LearningError, EnvError),
          ({ message }) => misfit(`${file}: ${message}`),
        )

  return {
    use,
    floats: (file: string, name: string, shape: ReadonlyArray<number>): Effect.Effect<Float32Array, LearningError> =>
      use(file, (arrays) => {
        const array = arrays[name]
        if (array === undefined) throw misfit(`"${name}" is missing`)
        if (array.data instanceof Float32Array && array.shape.join() === shape.join()) return array.data
        const actual = `${array.data.constructor.name} of shape [${array.shape.join(", ")}]`
        throw misfit(`"${name}": expected a Float32Array of shape [${shape.join(", ")}], found a ${actual}`)
      }),
    weights: weightsIn,
  }
}
export type SavedState = ReturnType<typeof savedState>

/** Copies an array of a checkpoint into `into`. Throws a LearningError if it is missing or has another type or length. */
export const copyInto = (
  arrays: NamedArrays,
  name: string,
  into: Float32Array | Float64Array | Int32Array | Uint8Array,
): void => {
  const array = arrays[name]
  if (array === undefined) throw misfit(`"${name}" is missing`)
  if (array.data.length !== into.length || array.data.constructor !== into.constructor) {
    const sizeOf = ({ length, constructor }: NamedVector["data"]): string => `${length} × ${constructor.name}`
    throw misfit(`"${name}": expected ${sizeOf(into)}, found ${sizeOf(array.data)}`)
  }
  into.set(array.data)
}
