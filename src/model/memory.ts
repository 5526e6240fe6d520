import { lstmCell } from "../graph/layers.ts"
import { concat, mul, reshape, slice, sub } from "../graph/ops.ts"
import type { Tensor } from "../graph/Tensor.ts"
import type { Declarations, Weights } from "./trunk.ts"

/** What there is to remember when a sequence begins, and where in it episodes begin anew. */
export interface Recall {
  /** Hidden and cell state, side by side: [sequences, size]. */
  readonly state: Tensor
  /** 1 where a row is an episode's first, else 0: [sequences × steps], sequence after sequence. */
  readonly fresh: Tensor
}

/** A long short-term memory over sequences of rows. */
export interface Memory {
  readonly parameters: Declarations
  readonly outputs: number
  /** Numbers of a state. */
  readonly size: number
  /** Rows [sequences × steps, inputs], sequence after sequence → features of as many rows, and the state after them. */
  readonly apply: (
    weights: Weights,
    rows: Tensor,
    recall: Recall,
  ) => { readonly features: Tensor; readonly memory: Tensor }
}

export const memory = (name: string, inputs: number, units: number): Memory => {
  const cell = lstmCell(name, inputs, units)
  return {
    parameters: cell.parameters,
    outputs: units,
    size: 2 * units,
    apply: (weights, rows, { state, fresh }) => {
      const [sequences] = state.shape
      const steps = rows.shape[0] / sequences
      // What the inputs contribute needs no memory: one product for all steps.
      const contributions = reshape(cell.fromInput(weights, rows), [sequences, steps, 4 * units])
      const goesOn = reshape(sub(1, fresh), [sequences, steps])
      let hidden = slice(state, [0, 0], [sequences, units])
      let kept = slice(state, [0, units], [sequences, units])
      const outputs: Array<Tensor> = []
      for (let step = 0; step < steps; step++) {
        const lasts = slice(goesOn, [0, step], [sequences, 1])
        const contribution = reshape(slice(contributions, [0, step, 0], [sequences, 1, 4 * units]), [
          sequences,
          4 * units,
        ])
        const next = cell.step(weights, contribution, { hidden: mul(hidden, lasts), cell: mul(kept, lasts) })
        hidden = next.hidden
        kept = next.cell
        outputs.push(reshape(hidden, [sequences, 1, units]))
      }
      const features = outputs.length === 1 ? outputs[0] : concat(outputs, 1)
      return { features: reshape(features, [sequences * steps, units]), memory: concat([hidden, kept], 1) }
    },
  }
}
