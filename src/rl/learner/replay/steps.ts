/** Builds parts of the updates of off-policy algorithms as graphs: gradient steps, and changes of target networks. */
import { Record } from "effect"
import { add, equal, mul, state, sub, where } from "../../../tensor/graph/ops.ts"
import { GraphError } from "../../../tensor/graph/GraphError.ts"
import { adam } from "../../../tensor/graph/optimisers.ts"
import type { OptimiserOf, OptimiserSetting } from "../../../tensor/graph/optimiserSettings.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import { descend, type Net } from "../graphs.ts"
import { chosenOptimiser } from "../parts.ts"

/** A network in an update, with the name of the program state that holds its weights. */
export interface NamedNet extends Net {
  readonly name: string
}

/** States of a program by name, such as weights, each with the value that it has after the update. */
export type NextStates = Readonly<Record<string, { readonly tensor: Tensor; readonly next: Tensor }>>

interface StepOptions {
  readonly learningRate: Tensor
  /** The ε of Adam. */
  readonly epsilon?: number
  readonly maxGradNorm: number
  /** The optimiser to use instead of Adam; null or absent means Adam. */
  readonly optimiser?: OptimiserSetting | OptimiserOf | null
}

/**
 * Builds one step down the gradient of a loss, by Adam or another optimiser; returns the next weights, and all states that
 * it changes.
 */
export const gradientStep = (
  net: NamedNet,
  loss: Tensor,
  options: StepOptions,
): { readonly next: Tensor; readonly states: NextStates } => {
  const { learningRate, epsilon = 1e-8, maxGradNorm, optimiser = null } = options
  const { layout } = net
  const { size } = layout
  const name = `${net.name}.${optimiser === null ? "adam" : "optimiser"}`
  const make = chosenOptimiser({ optimiser }, () => adam({ name, size, learningRate, epsilon }))
  const { next, moments } = descend(net, loss, make({ layout, size, learningRate, name }), maxGradNorm)
  const foreign = Object.keys(moments).find((key) => !key.startsWith(name))
  if (foreign !== undefined) {
    // The states of several networks are in one program, so their names must differ.
    const message = `algorithm.optimiser: expected states whose names begin with the \`name\` that it gets, found "${foreign}"`
    throw new GraphError({ op: "optimiser", message, shapes: [], where: "" })
  }
  return { next, states: { [net.name]: { tensor: net.theta, next }, ...moments } }
}

/** Moves a target network by the share τ towards the online weights: θ′ ← θ′ + τ (θ − θ′). */
export const polyak = (target: NamedNet, online: Tensor, tau: number): NextStates => ({
  [target.name]: { tensor: target.theta, next: add(target.theta, mul(sub(online, target.theta), tau)) },
})

/**
 * Makes states change only in every n-th update. Adds a state named `counter`, which counts updates up to n − 1, unless n
 * is 1.
 */
export const everyNth = (n: number, counter: string, states: NextStates): NextStates => {
  if (n === 1) return states
  const count = state(counter, [])
  const last = equal(count, n - 1)
  return {
    ...Record.map(states, ({ tensor, next }) => ({ tensor, next: where(last, next, tensor) })),
    [counter]: { tensor: count, next: where(last, 0, add(count, 1)) },
  }
}
