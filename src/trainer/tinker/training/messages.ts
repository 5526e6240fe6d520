/** Defines the messages between a Tinker server and its thread that trains. */
import type { Datum, LossRequest } from "./Datum.ts"
import type { AdapterRow } from "./TrainingPrograms.ts"
import type { WindowBatch } from "./windows.ts"

/** Asks for one computation of `TrainingPrograms`, or for none, once the programs are compiled. */
export type Question =
  | { readonly kind: "open" }
  | {
      readonly kind: "forward"
      readonly batch: WindowBatch
      readonly data: ReadonlyArray<Pick<Datum, "tokens" | "targets">>
      readonly adapter: AdapterRow
    }
  | {
      readonly kind: "gradient"
      readonly batch: WindowBatch
      readonly request: LossRequest
      readonly adapter: AdapterRow
    }
  | { readonly kind: "distribution"; readonly tokens: Int32Array; readonly adapter: AdapterRow }

export interface Answer {
  readonly logProbabilities: Float32Array<ArrayBuffer>
  /** The gradient, if the question asks for it; otherwise empty. */
  readonly gradient: Float32Array<ArrayBuffer>
}
