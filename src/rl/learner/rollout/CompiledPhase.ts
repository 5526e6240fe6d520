/** Declares the type of a compiled phase, which `update.ts` and `slices.ts` make. */
import type { Effect } from "effect"
import type { BackendError, Program, TensorData } from "../../../tensor/backend/Backend.ts"
import type { Averages } from "../Averages.ts"
import type { statesOf } from "../learnerState.ts"
import type { AnyPhase } from "./Phase.ts"

/** A phase of an update, with its compiled programs. */
export interface CompiledPhase {
  readonly phase: Pick<AnyPhase<never>, "epochs" | "scheduledInputs">
  /** All programs of the phase. */
  readonly programs: ReadonlyArray<Program>
  /** The program that reads the rows. */
  readonly reader: Program
  /** The program that holds the weights after the phase. */
  readonly last: Program
  /** The names of the reader's inputs that hold the rows. */
  readonly gathered: ReadonlyArray<string>
  /** The rows of all minibatches, one after another; to be filled before each run. */
  readonly indices: TensorData
  /** The input of the learning rate, if the phase has one. */
  readonly learningRate: TensorData | undefined
  /** Computes all minibatches, and adds the means of the metrics to the averages. */
  readonly run: (averages: Averages) => Effect.Effect<void, BackendError>
  readonly optimiser: ReturnType<typeof statesOf>
}
