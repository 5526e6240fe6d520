import { sizeOf } from "../../env/Space.ts"
import { add, constant, input, mul, state, sub } from "../../graph/ops.ts"
import { adam } from "../../graph/optimisers.ts"
import type { Layout } from "../../graph/Parameters.ts"
import type { ProgramSpec } from "../../graph/Program.ts"
import type { Tensor } from "../../graph/Tensor.ts"
import type { PolicyOptions, Task } from "../Algorithm.ts"
import { toEnvAction } from "../../model/actions.ts"
import { descend, type Net } from "../descent.ts"
import { type Learnt, type ReplayDefinition, targetOf } from "./definition.ts"

export interface Layouts {
  readonly actor: Layout
  readonly critic: Layout
}

const netOf = (parameters: Layout, name: string): Net => {
  const theta = state(name, [parameters.size])
  return { layout: parameters, theta, weights: parameters.tensorsOf(theta) }
}

/** Of each row of a batch, where priorities want to know. */
export const errorsOutput = "errors"

export const actSpec = (
  { name, noise, act, exploration }: ReplayDefinition,
  layouts: Layouts,
  task: Task,
): ProgramSpec => {
  const { theta, weights } = netOf(layouts.actor, "actor")
  const observations = input("observations", [task.numEnvs, sizeOf(task.observationSpace)])
  const uniform = input("noise", [task.numEnvs, Math.max(1, noise.act)])
  const explore = input("exploration", [])
  const actions = act({ weights, observations, noise: uniform, exploration: explore })
  return {
    name: `${name}.act`,
    inputs: {
      observations,
      ...(noise.act === 0 ? {} : { noise: uniform }),
      ...(exploration === undefined ? {} : { exploration: explore }),
    },
    state: { actor: { tensor: theta } },
    outputs: { actions: toEnvAction(task.actionSpace, actions) },
  }
}

export const policySpec = (
  definition: ReplayDefinition,
  layouts: Layouts,
  task: Task,
  numEnvs: number,
  { sampled = false, see = (seen) => seen }: PolicyOptions = {},
): ProgramSpec => {
  const { name, greedy, act, noise: needs, exploration } = definition
  const { theta, weights } = netOf(layouts.actor, "theta")
  const seen = input("observations", [numEnvs, sizeOf(task.observationSpace)])
  const observations = see(seen)
  const noise = input("noise", [numEnvs, Math.max(1, needs.act)])
  const draws = sampled && needs.act > 0
  const actions = draws
    ? act({ weights, observations, noise, exploration: constant(exploration?.(task.totalSteps) ?? 0) })
    : greedy(weights, observations)
  return {
    name: `${name}.policy`,
    inputs: { observations: seen, ...(draws ? { noise } : {}) },
    state: { theta: { tensor: theta } },
    outputs: { actions: toEnvAction(task.actionSpace, actions) },
  }
}

export const updateSpec = (definition: ReplayDefinition, layouts: Layouts, task: Task): ProgramSpec => {
  const { name, config, noise, learn, scalars, targets } = definition
  const { batchSize: rows, gradientSteps } = config
  const width = sizeOf(task.observationSpace)
  const nets = { actor: netOf(layouts.actor, "actor"), critic: netOf(layouts.critic, "critic") }
  const slow = {
    actor: netOf(layouts.actor, targetOf("actor")),
    critic: netOf(layouts.critic, targetOf("critic")),
  }
  const gathered = {
    observations: input("observations", [rows, width]),
    actions:
      task.actionSpace._tag === "Discrete"
        ? input("actions", [rows], "i32")
        : input("actions", [rows, sizeOf(task.actionSpace)]),
    rewards: input("rewards", [rows]),
    nextObservations: input("nextObservations", [rows, width]),
    discounts: input("discounts", [rows]),
  }
  const importance = input("importance", [rows])
  const uniform = input("updateNoise", [rows, Math.max(1, noise.learn)])
  const fed = Object.fromEntries(Object.keys(scalars(0)).map((key) => [key, input(key, [])]))
  const { states, metrics, errors } = learn({
    ...gathered,
    ...nets,
    targets: slow,
    rows,
    importance: config.prioritised ? importance : undefined,
    noise: uniform,
    scalar: (key) => fed[key],
  })
  const inputs = {
    ...gathered,
    ...(config.prioritised ? { importance } : {}),
    ...(noise.learn === 0 ? {} : { updateNoise: uniform }),
  }
  return {
    name: `${name}.update`,
    inputs: { ...inputs, ...fed },
    state: { ...Object.fromEntries(targets.map((net) => [targetOf(net), { tensor: slow[net].theta }])), ...states },
    outputs: { ...metrics, ...(errors !== undefined && config.prioritised ? { [errorsOutput]: errors } : {}) },
    ...(gradientSteps === 1
      ? {}
      : {
          minibatches: { rows: rows * gradientSteps, batch: rows, count: gradientSteps, gathered: Object.keys(inputs) },
        }),
  }
}

/** A network's next parameters by a loss and Adam, and what that keeps. */
export const adamStep = (
  name: string,
  net: Net,
  loss: Tensor,
  { learningRate, epsilon = 1e-8, maxGradNorm = 0 }: DescentOptions,
): { readonly next: Tensor; readonly states: Learnt["states"] } => {
  const optimiser = adam({ name: `${name}.adam`, size: net.layout.size, learningRate, epsilon })
  const { next, moments } = descend(net, loss, optimiser, maxGradNorm)
  return { next, states: { [name]: { tensor: net.theta, next }, ...moments } }
}

interface DescentOptions {
  readonly learningRate: Tensor
  readonly epsilon?: number
  readonly maxGradNorm?: number
}

/** A slow copy moved a little towards its original: τ θ + (1 − τ) θ'. */
export const polyak = (net: "actor" | "critic", { theta }: Net, original: Tensor, tau: number): Learnt["states"] => ({
  [targetOf(net)]: { tensor: theta, next: add(theta, mul(sub(original, theta), tau)) },
})
