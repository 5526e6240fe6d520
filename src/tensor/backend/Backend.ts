/**
 * Defines the service `Backend`, which compiles a graph to a program for one device, and the errors of both. The other
 * files of this folder implement the service as Layers. Learners and policies call `compile` once and then run the
 * program many times. This file itself uses no device.
 */
import { Context, Effect, Record, type Scope } from "effect"
import { MinimumLogLevel } from "effect/References"
import * as Schema from "effect/Schema"
import { attempt } from "../../base/config/attempt.ts"
import type { GraphError } from "../graph/GraphError.ts"
import type { ProgramSpec } from "../graph/Program.ts"
import { arrayTypes, sizeOf, type TensorData } from "../graph/Tensor.ts"
import { feedShapes, type Outline } from "../graph/validate.ts"

export type { TensorData } from "../graph/Tensor.ts"

/** Makes an array of zeros that has room for the numbers of a tensor with this shape and type. */
export const dataFor = ({ shape, dtype }: Outline): TensorData => new arrayTypes[dtype](sizeOf(shape))

/**
 * Copies the first `length` elements of a tensor of ONNX Runtime; the elements behind them in `to` keep their values. If a
 * program ends early, `length` covers only the minibatches that ran.
 */
export const copyInto = (from: unknown, to: TensorData, length: number): void => {
  if (from instanceof Float32Array || from instanceof Int32Array || from instanceof Uint8Array)
    to.set(from.length > length ? from.subarray(0, length) : from)
}

/**
 * A compiled graph that keeps its states (such as weights) between runs. Its inputs (`feeds`) and outputs (`results`)
 * are arrays that live as long as the program: write into `feeds`, run, read from `results`. All states start as zeros:
 * set the weights with `write` before the first run.
 */
export interface Program {
  readonly name: string
  /** The device that runs the program: "cpu", "cuda", "webgpu", "wasm", "reference" or "onnx-web on …". */
  readonly device: string
  readonly feeds: Readonly<Record<string, TensorData>>
  readonly results: Readonly<Record<string, TensorData>>
  /** Returns the number of minibatches that the last run computed; 1 for a program without minibatches. */
  readonly iterations: () => number
  readonly run: Effect.Effect<void, BackendError>
  /** Runs the program synchronously, without an Effect; absent on asynchronous devices. Throws a `BackendError`. */
  readonly runSync?: () => void
  /** Returns a copy of the numbers of a state. With `into`, it copies them to that array, of the same size, and returns it. */
  readonly read: (state: string, into?: Float32Array) => Effect.Effect<Float32Array, BackendError>
  /** Copies numbers into a state; their number must be the size of the state. */
  readonly write: (state: string, data: Float32Array) => Effect.Effect<void, BackendError>
}

/** Reports that a backend cannot run on this machine. The message names what is missing and how to install it. */
export class BackendUnavailable extends Schema.TaggedError<BackendUnavailable>()("BackendUnavailable", {
  backend: Schema.String,
  missing: Schema.String,
  remedy: Schema.String,
}) {
  override get message(): string {
    return `Backend "${this.backend}" is not available: ${this.missing}. ${this.remedy}`
  }
}

/** Reports that a program failed while it was running. */
export class BackendError extends Schema.TaggedError<BackendError>()("BackendError", {
  backend: Schema.String,
  program: Schema.String,
  message: Schema.String,
}) {}

/**
 * The part of a program that differs between backends; `programOf` makes the program from it. Only the names of existing
 * states are passed to `read` and `write`.
 */
interface SyncProgram extends Pick<Program, "device" | "feeds" | "results" | "iterations"> {
  readonly runSync: () => void
  /** Returns the numbers of a state. The next run may change the array, so `programOf` copies it. */
  readonly read: (state: string) => Float32Array
  readonly write: (state: string, data: Float32Array) => void
}

/** Makes a `Program` from a backend's functions, and adds checks of the names and sizes of states. */
export const programOf = ({ name, state }: ProgramSpec, machine: SyncProgram): Program => {
  const failure = (message: string) => new BackendError({ backend: machine.device, program: name, message })
  const checkSize = (key: string, size: number, { length }: Float32Array): void => {
    if (size !== length) throw failure(`state "${key}": expected ${size} numbers, found ${length}`)
  }
  const attemptOn = <A>(key: string, body: (size: number) => A): Effect.Effect<A, BackendError> =>
    attempt(() => {
      const entry = state[key]
      if (entry === undefined) throw failure(`there is no state "${key}"`)
      return body(sizeOf(entry.tensor.shape))
    }, BackendError)
  return {
    ...machine,
    name,
    run: attempt(machine.runSync, BackendError),
    read: (key, into) =>
      attemptOn(key, (size) => {
        const copy = into ?? new Float32Array(size)
        checkSize(key, size, copy)
        copy.set(machine.read(key))
        return copy
      }),
    write: (key, data) =>
      attemptOn(key, (size) => {
        checkSize(key, size, data)
        machine.write(key, data)
      }),
  }
}

/** The options of `compileAll`. */
export interface GroupOptions {
  /**
   * The names of feeds that all programs share as one array. If programs have different numbers of rows, the array has
   * the largest number, and a program with fewer reads the first rows. All other feeds belong to one program.
   */
  readonly sharedFeeds?: ReadonlyArray<string>
}

/** The result of compiling. Programs live as long as the scope. */
export type Compiling<A> = Effect.Effect<A, GraphError | BackendUnavailable | BackendError, Scope.Scope>

/** Compiles graphs to programs. The Layer decides on which device they run. */
export class Backend extends Context.Service<
  Backend,
  {
    readonly name: string
    /** Compiles one program, with states of its own. */
    readonly compile: (spec: ProgramSpec) => Compiling<Program>
    /**
     * Compiles programs that share their states: states of the same name are one array, so a `write` to one program, or
     * a next value that one program computes, changes the state for all. Use it to run the same weights in programs
     * with different static shapes. Only one program of a group may run at a time. It fails with a `GraphError` if a
     * state has another shape in two of the programs.
     *
     * @example
     * ```ts
     * const group = yield* (yield* Backend).compileAll({ prefill, decode, train }, { sharedFeeds: ["cache"] })
     * yield* group.train.run
     * yield* group.decode.run // reads the weights that `train` has computed
     * ```
     */
    readonly compileAll: <Name extends string>(
      specs: Readonly<Record<Name, ProgramSpec>>,
      options?: GroupOptions,
    ) => Compiling<Readonly<Record<Name, Program>>>
    /** Returns warnings about the programs compiled so far; the run writes them to `run.log`. */
    readonly warnings?: Effect.Effect<ReadonlyArray<string>>
    /**
     * Makes the programs that are in use faster, in other processes, until it is interrupted; logs what it did. It changes no
     * bit of a result. A run carries it out beside its loop.
     */
    readonly improve?: Effect.Effect<void>
  }
>()("effect-rl/backend/Backend") {}

/**
 * Makes the programs of the backend faster until the scope closes (see `improve`), for programs that run outside of a run's
 * loop. It logs only warnings.
 */
export const improving: Effect.Effect<void, never, Backend | Scope.Scope> = Effect.gen(function* () {
  const { improve } = yield* Backend
  if (improve !== undefined) yield* Effect.forkScoped(Effect.provideService(improve, MinimumLogLevel, "Warn"))
})

/** Makes the arrays of the feeds that programs share. Each has the largest length that one of the programs needs. */
export const sharedArrays = (
  specs: Readonly<Record<string, ProgramSpec>>,
  names: ReadonlyArray<string>,
): ReadonlyMap<string, TensorData> => {
  const largest = new Map<string, Outline>()
  for (const spec of Object.values(specs))
    for (const [name, outline] of Object.entries(feedShapes(spec)))
      if (names.includes(name) && sizeOf(outline.shape) >= sizeOf(largest.get(name)?.shape ?? [0]))
        largest.set(name, outline)
  return new Map(Array.from(largest, ([name, outline]) => [name, dataFor(outline)]))
}

/** Makes the feeds of a program: views of the arrays in `shared` where there is one, otherwise arrays of its own. */
export const feedsOf = (
  spec: ProgramSpec,
  shared: ReadonlyMap<string, TensorData>,
): Readonly<Record<string, TensorData>> =>
  Record.map(
    feedShapes(spec),
    (outline, name) => shared.get(name)?.subarray(0, sizeOf(outline.shape)) ?? dataFor(outline),
  )

/** Makes `compile` from `compileAll`: one program is a group of one. */
export const compileOne =
  (compileAll: Backend["Service"]["compileAll"]): Backend["Service"]["compile"] =>
  (spec) =>
    Effect.map(compileAll({ program: spec }), ({ program }) => program)
