/** Functions with which off-policy algorithms build updates as graphs: steps of Adam, changes of target networks. */
import { Record } from "effect"
import { add, equal, mul, state, sub, where } from "../../graph/ops.ts"
import { adam } from "../../graph/optimisers.ts"
import type { Tensor } from "../../graph/Tensor.ts"
import { descend, type Net } from "../graphs.ts"

/** A network in an update, with the name of the program state that holds its weights. */
export interface NamedNet extends Net {
  readonly name: string
}

/** States of a program by name, such as weights, each with the value that it has after the update. */
export type NextStates = Readonly<Record<string, { readonly tensor: Tensor; readonly next: Tensor }>>

/** Builds one step of Adam down the gradient of a loss; returns the next weights, and all states that it changes. */
export const adamStep = (
  net: NamedNet,
  loss: Tensor,
  options: { readonly learningRate: Tensor; readonly epsilon?: number; readonly maxGradNorm: number },
): { readonly next: Tensor; readonly states: NextStates } => {
  const { learningRate, epsilon = 1e-8, maxGradNorm } = options
  const optimiser = adam({ name: `${net.name}.adam`, size: net.layout.size, learningRate, epsilon })
  const { next, moments } = descend(net, loss, optimiser, maxGradNorm)
  return { next, states: { [net.name]: { tensor: net.theta, next }, ...moments } }
}

/** Moves a target network by the share τ towards the online weights: θ′ ← θ′ + τ (θ − θ′). */
export const polyak = (target: NamedNet, online: Tensor, tau: number): NextStates => ({
  [target.name]: { tensor: target.theta, next: add(target.theta, mul(sub(online, target.theta), tau)) },
})

/** Makes states change only in every n-th update. Adds a state named `counter`, which counts updates up to n − 1. */
export const everyNth = (n: number, counter: string, states: NextStates): NextStates => {
  const count = state(counter, [])
  const last = equal(count, n - 1)
  return {
    ...Record.map(states, ({ tensor, next }) => ({ tensor, next: where(last, next, tensor) })),
    [counter]: { tensor: count, next: where(last, 0, add(count, 1)) },
  }
}
