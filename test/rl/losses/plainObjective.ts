import type { TokenObjective } from "../../../src/rl/losses/Losses.ts"

/** The numbers of a token, or of a column. */
export interface PlainToken {
  readonly logProbability_t: number
  readonly inferenceLogProbability_t: number
  readonly oldLogProbability_t: number | null
  readonly referenceLogProbability_t: number
  readonly advantage_t: number
  readonly weight_t: number
  readonly sequence: number
}

/**
 * The loss of an objective, in plain loops as the papers write it. `frozen` has the log probabilities where the papers stop
 * the gradient; they are the same numbers unless a derivative is computed.
 */
export const plainLoss = (
  config: TokenObjective,
  tokens: ReadonlyArray<PlainToken>,
  frozen: ReadonlyArray<number> = tokens.map((token) => token.logProbability_t),
): number => {
  let total = 0
  tokens.forEach((token, at) => {
    if (token.weight_t === 0) return
    total += token.weight_t * lossOf(config, tokens, frozen, at)
  })
  return total
}

const lossOf = (
  config: TokenObjective,
  tokens: ReadonlyArray<PlainToken>,
  frozen: ReadonlyArray<number>,
  at: number,
): number => {
  const token = tokens[at]
  if (config.type === "sft") return -token.logProbability_t
  if (config.type === "dpo") throw new Error("dpo has a test of its own, preferences.test.ts")
  const old = (index: number): number =>
    tokens[index].oldLogProbability_t ??
    (config.importance === null ? tokens[index].inferenceLogProbability_t : frozen[index])
  const hasRatio = config.type !== "reinforce" && config.type !== "rloo"
  let loss: number
  if (!hasRatio) loss = -token.advantage_t * token.logProbability_t
  else if (config.type === "scalerl")
    loss = -Math.min(Math.exp(frozen[at] - old(at)), config.cap) * token.advantage_t * token.logProbability_t
  else if (config.type === "sapo") {
    const temperature = token.advantage_t > 0 ? config.temperaturePositive : config.temperatureNegative
    const ratio = Math.exp(token.logProbability_t - old(at))
    loss = (-(4 / temperature) * token.advantage_t) / (1 + Math.exp(-temperature * (ratio - 1)))
  } else if (config.type === "gmpo") {
    const logs = tokens.flatMap((other, index) => {
      if (other.sequence !== token.sequence || other.weight_t === 0) return []
      const logRatio = other.logProbability_t - old(index)
      return [other.advantage_t > 0 ? Math.min(logRatio, config.clipHigh) : Math.max(logRatio, -config.clipLow)]
    })
    loss = -token.advantage_t * Math.exp(logs.reduce((sum, one) => sum + one, 0) / logs.length)
  } else if (config.type === "cispo") {
    const ratio = Math.exp(frozen[at] - old(at))
    const low = config.clipLow === null ? 0 : 1 - config.clipLow
    loss = -Math.max(low, Math.min(ratio, 1 + config.clipHigh)) * token.advantage_t * token.logProbability_t
  } else {
    let logRatio = token.logProbability_t - old(at)
    if (config.type === "gspo") {
      const own = tokens.flatMap(({ sequence, weight_t }, index) =>
        sequence === token.sequence && weight_t !== 0 ? [index] : [],
      )
      logRatio = own.reduce((sum, index) => sum + tokens[index].logProbability_t - old(index), 0) / own.length
    }
    const ratio = Math.exp(logRatio)
    const clipped = Math.min(Math.max(ratio, 1 - config.clipLow), 1 + config.clipHigh)
    loss = -Math.min(ratio * token.advantage_t, clipped * token.advantage_t)
  }
  if (config.importance !== null) {
    const trainer = hasRatio ? (token.oldLogProbability_t ?? frozen[at]) : frozen[at]
    loss *= Math.min(Math.exp(trainer - token.inferenceLogProbability_t), config.importance.cap)
  }
  if (config.kl !== null) {
    const d = token.referenceLogProbability_t - token.logProbability_t
    const kl = { k1: -d, k2: (d * d) / 2, k3: Math.exp(d) - d - 1 }[config.kl.type]
    loss += config.kl.coefficient * kl
  }
  return loss
}
