/** Declares the settings of algorithms that search: option interfaces for users, fields for config Schemas. */
import { bounded, fraction, nonNegative, positive, withDefault } from "../../../base/config/fields.ts"
import type { NetworkOptions } from "../../model/trunk.ts"
import type { NetworksOption, OptimiserOption } from "../parts.ts"

export interface SearchSettings {
  /** The number of simulations of each search; a search calls the network once more than that. @default 50 */
  readonly simulations?: number
  /** The weight of the network's probabilities in the search, c_init. @default 1.25 */
  readonly exploration?: number
  /** The number of visits after which the weight of the probabilities begins to grow, c_base. @default 19652 */
  readonly explorationBase?: number
  /** The share of noise in the probabilities at the root of a search, in training. @default 0.25 */
  readonly noiseShare?: number
  /** The α of the Dirichlet distribution of the noise: the smaller, the fewer actions have most of it. @default 0.5 */
  readonly noiseAlpha?: number
  /** Actions are drawn in proportion to visits to the power 1 / temperature, in training. @default 1 */
  readonly temperature?: number
  /** The number of steps of an episode whose actions are drawn; later ones are the most visited. @default 30 */
  readonly temperatureSteps?: number
}

/** The settings of an algorithm that searches, and of its network. */
export interface SearchingOptions extends SearchSettings, NetworkOptions, NetworksOption, OptimiserOption {}

export const searchFields = {
  simulations: withDefault(bounded("simulations"), 50),
  exploration: withDefault(nonNegative, 1.25),
  explorationBase: withDefault(positive, 19_652),
  noiseShare: withDefault(fraction, 0.25),
  noiseAlpha: withDefault(positive, 0.5),
  temperature: withDefault(positive, 1),
  temperatureSteps: withDefault(nonNegative, 30),
}
