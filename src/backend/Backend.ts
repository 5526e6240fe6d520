import { Context, type Effect, Schema, type Scope } from "effect"
import type { GraphError } from "../graph/GraphError.ts"
import type { ProgramSpec } from "../graph/Program.ts"

/** f32 in Float32Array, i32 in Int32Array, bool as 0 and 1 in Uint8Array. */
export type TensorData = Float32Array | Int32Array | Uint8Array

/**
 * A compiled graph with resident state. Feeds and results are arrays that live as long as the program:
 * write into `feeds`, run, read from `results`. State starts as zeros: `write` it before the first run.
 */
export interface Program {
  readonly name: string
  /** What computes it: "cpu", "cuda", "webgpu", "wasm", "reference". */
  readonly device: string
  readonly feeds: Readonly<Record<string, TensorData>>
  readonly results: Readonly<Record<string, TensorData>>
  /** How many minibatches the last run did; 1 for a program without minibatches. */
  readonly iterations: () => number
  readonly run: Effect.Effect<void, BackendError>
  /** The same, for loops that must not leave a chunk; absent where the device answers asynchronously. Throws BackendError. */
  readonly runSync?: () => void
  /** A copy of a state tensor. */
  readonly read: (state: string) => Effect.Effect<Float32Array, BackendError>
  readonly write: (state: string, data: Float32Array) => Effect.Effect<void, BackendError>
}

/** A device that the machine lacks: what is missing, and how to get it. */
export class BackendUnavailable extends Schema.TaggedError<BackendUnavailable>()("BackendUnavailable", {
  backend: Schema.String,
  missing: Schema.String,
  remedy: Schema.String,
}) {
  override get message(): string {
    return `Backend "${this.backend}" is not available: ${this.missing}. ${this.remedy}`
  }
}

/** A program that failed while it ran. */
export class BackendError extends Schema.TaggedError<BackendError>()("BackendError", {
  backend: Schema.String,
  program: Schema.String,
  message: Schema.String,
}) {}

/** Turns graphs into programs. Which machine runs them is the Layer's choice. */
export class Backend extends Context.Service<
  Backend,
  {
    readonly name: string
    readonly compile: (
      spec: ProgramSpec,
    ) => Effect.Effect<Program, GraphError | BackendUnavailable | BackendError, Scope.Scope>
    /** What `run.log` should say of the programs compiled so far. */
    readonly warnings?: Effect.Effect<ReadonlyArray<string>>
  }
>()("effect-rl/backend/Backend") {}
