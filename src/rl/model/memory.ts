/** Builds the graph of an LSTM, the memory of recurrent actors and critics. A learner keeps the state between steps. */
import { lstmCell } from "../../tensor/graph/layers.ts"
import { concat, constant, mul, reshape, slice, sub } from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { Declarations, Weights } from "./trunk.ts"

/** The state before each sequence (successive steps, or rows, of an env), and the rows at which an episode begins. */
export interface Recall {
  /** The hidden state and the cell state, joined, of shape [sequences, size]. */
  readonly state: Tensor
  /** 1 for the first row of an episode, else 0, of shape [sequences × steps], sequence after sequence. */
  readonly fresh: Tensor
}

/** Returns the empty memory for rows that are each a sequence of their own. */
export const emptyMemory = (rows: number, size: number): Recall => ({
  state: constant(new Float32Array(rows * size), [rows, size]),
  fresh: constant(new Float32Array(rows), [rows]),
})

/** A long short-term memory (LSTM) over sequences of rows. */
export interface Memory {
  readonly parameters: Declarations
  /** The number of features in each row. */
  readonly outputs: number
  /** The number of elements of a state. */
  readonly size: number
  /** Computes a row of features for each of the rows [sequences × steps, inputs], and the state after each sequence. */
  readonly apply: (
    weights: Weights,
    rows: Tensor,
    recall: Recall,
  ) => { readonly features: Tensor; readonly memory: Tensor }
}

/**
 * Makes an LSTM with this number of units. It sets its state to 0 where an episode begins. `forgetBias` is the
 * first bias of its forget gates: see `lstmCell`.
 *
 * @example
 * ```ts
 * memory("memory", 64, 128).size // 256: hidden and cell state
 * ```
 */
export const memory = (name: string, inputs: number, units: number, forgetBias = 0): Memory => {
  const cell = lstmCell(name, inputs, units, forgetBias)
  return {
    parameters: cell.parameters,
    outputs: units,
    size: 2 * units,
    apply: (weights, rows, { state, fresh }) => {
      const [sequences] = state.shape
      const steps = rows.shape[0] / sequences
      // Each of the 4 gates adds a product of the step's input and a product of the state. Only the latter must wait for
      // the step before, so the products of the inputs of all steps are computed together.
      const contributions = reshape(cell.fromInput(weights, rows), [sequences, steps, 4 * units])
      const continues = reshape(sub(1, fresh), [sequences, steps])
      let hidden = slice(state, [0, 0], [sequences, units])
      let cellState = slice(state, [0, units], [sequences, units])
      const outputs: Array<Tensor> = []
      for (let step = 0; step < steps; step++) {
        const stays = slice(continues, [0, step], [sequences, 1])
        const contribution = reshape(slice(contributions, [0, step, 0], [sequences, 1, 4 * units]), [
          sequences,
          4 * units,
        ])
        const next = cell.step(weights, contribution, { hidden: mul(hidden, stays), cell: mul(cellState, stays) })
        hidden = next.hidden
        cellState = next.cell
        outputs.push(reshape(hidden, [sequences, 1, units]))
      }
      const features = outputs.length === 1 ? outputs[0] : concat(outputs, 1)
      return { features: reshape(features, [sequences * steps, units]), memory: concat([hidden, cellState], 1) }
    },
  }
}
