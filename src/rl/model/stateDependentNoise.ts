/** Declares the settings and parameters of generalised state-dependent exploration. */
import * as Schema from "effect/Schema"
import { withDefault } from "../../base/config/fields.ts"
import { constant as filledWith } from "../../tensor/graph/initialisers.ts"
import { broadcastTo, exp, greater, log, add, maximum, where } from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { Declarations, Weights } from "./trunk.ts"

/** The settings of a network's exploration that depends on the state. */
export interface StateDependentOptions {
  /**
   * Learns a standard deviation for each pair of a feature and an element of an action; false learns one for each
   * feature. @default true
   */
  readonly fullStd?: boolean
  /**
   * Computes standard deviations from the learned numbers x by exp(x) for x ≤ 0 and log(1 + x) + 1 above, which grows
   * more slowly than exp(x). @default false
   */
  readonly expln?: boolean
}

export const stateDependentFields = {
  fullStd: withDefault(Schema.Boolean, true),
  expln: withDefault(Schema.Boolean, false),
}

/** The parameters of state-dependent exploration, and the standard deviations computed from them. */
interface StateDependentNoise {
  readonly parameters: Declarations
  /** The deviations of the matrix that maps features to noise, of shape [features, actions]. */
  readonly deviation: (weights: Weights) => Tensor
}

/**
 * Makes the parameters of generalised state-dependent exploration (Raffin et al. 2021, arXiv:2005.05719): the logarithms of the
 * deviations of a random matrix, which maps the features of an observation to the noise on its action.
 */
export const stateDependentNoise = (
  name: string,
  features: number,
  actions: number,
  { fullStd, expln, logStdInit }: Required<StateDependentOptions> & { readonly logStdInit: number },
): StateDependentNoise => ({
  parameters: { [name]: { shape: [features, fullStd ? actions : 1], init: filledWith(logStdInit) } },
  deviation: (weights) => {
    const x = weights[name]
    const deviation = expln ? where(greater(x, 0), add(log(add(maximum(x, 0), 1 + 1e-6)), 1), exp(x)) : exp(x)
    return broadcastTo(deviation, [features, actions])
  },
})
