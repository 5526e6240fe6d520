/**
 * Computes the losses of generative adversarial imitation learning (GAIL; Ho and Ermon 2016, arXiv:1606.03476). A
 * discriminator distinguishes steps of an expert from steps of the policy. Its output for a step is a logit x: the step
 * is the expert's with probability D = 1 / (1 + exp(−x)). Logits have the shape [rows].
 *
 * @example
 * ```ts
 * const loss = Losses.discriminatorLoss({ expert: Graph.constant([2]), policy: Graph.constant([-1, 0]) })
 * const reward = Losses.imitationReward(Graph.constant([-1, 0]), "logit")
 * ```
 */
import { gradients } from "../../tensor/graph/gradients.ts"
import { add, mean, neg, softplus, square, sum } from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { fail } from "../../tensor/graph/ops/core.ts"

/**
 * Computes the loss of the discriminator (equation 17, with the labels of the code: D is the probability of the expert), a
 * cross entropy: E_expert[−log D] + E_policy[−log(1 − D)].
 *
 * @example
 * ```ts
 * Losses.discriminatorLoss({ expert: Graph.constant([0]), policy: Graph.constant([0, 0]) }) // 2 log 2
 * ```
 */
export const discriminatorLoss = ({ expert, policy }: { readonly expert: Tensor; readonly policy: Tensor }): Tensor => {
  for (const [name, logits] of Object.entries({ expert, policy })) {
    if (logits.shape.length !== 1) fail("discriminatorLoss", `${name}: expected shape [rows]`, logits)
  }
  return add(mean(softplus(neg(expert))), mean(softplus(policy)))
}

/**
 * Computes the penalty for steep outputs of a discriminator (Mescheder et al. 2018, arXiv:1801.04406, equation 9, without its
 * factor ½): the mean over rows of |∂x/∂inputs|², with the logit x of a row. Each of the inputs has the shape [rows, size].
 *
 * @example
 * ```ts
 * const inputs = Graph.constant([1, 2, 3, 4], [2, 2])
 * Losses.gradientPenalty(Graph.sum(Graph.mul(inputs, 3), 1), [inputs]) // 3² + 3²
 * ```
 */
export const gradientPenalty = (logits: Tensor, inputs: ReadonlyArray<Tensor>): Tensor => {
  for (const input of inputs) {
    if (input.shape.length !== 2 || input.shape[0] !== logits.shape[0])
      fail("gradientPenalty", "expected shape [rows, size]", input)
  }
  return gradients(sum(logits), inputs)
    .map((slopes) => mean(sum(square(slopes), 1)))
    .reduce((total, one) => add(total, one))
}

/**
 * The reward that a discriminator gives. With the probability D that the step is the expert's, it is −log(1 − D)
 * (`positive`), log D (`negative`), or log D − log(1 − D) (`logit`), which is the discriminator's output itself.
 */
export type ImitationReward = "positive" | "negative" | "logit"

/**
 * Computes the reward of each step from the discriminator's logits.
 *
 * @example
 * ```ts
 * Losses.imitationReward(Graph.constant([0]), "positive") // log 2
 * ```
 */
export const imitationReward = (logits: Tensor, form: ImitationReward): Tensor => {
  switch (form) {
    case "positive":
      return softplus(logits)
    case "negative":
      return neg(softplus(neg(logits)))
    case "logit":
      return logits
  }
}
