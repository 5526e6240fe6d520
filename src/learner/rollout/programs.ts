import type { Space } from "../../env/Space.ts"
import { sizeOf as sizeOfSpace } from "../../env/Space.ts"
import { add, constant, input, mul, reshape, state, sub, where } from "../../graph/ops.ts"
import { fail } from "../../graph/ops/core.ts"
import type { Optimiser } from "../../graph/optimisers.ts"
import { type Layout, layout } from "../../graph/Parameters.ts"
import type { ProgramSpec } from "../../graph/Program.ts"
import { type DType, sizeOf, type Tensor } from "../../graph/Tensor.ts"
import type { PolicyOptions, Task } from "../Algorithm.ts"
import type { DensePolicy } from "../../model/DensePolicy.ts"
import { descend } from "../descent.ts"
import { toEnvAction } from "../../model/actions.ts"
import type { Recall } from "../../model/memory.ts"
import type { Declarations, Weights } from "../../model/trunk.ts"

/** How a learner acts: as graphs, from weights. */
export interface Model {
  readonly parameters: Declarations
  readonly dense?: DensePolicy
  /** Uniform numbers in [0, 1) that acting takes, an env. */
  readonly noiseSize: number
  /** Numbers that an env's memory holds; 0 without memory. */
  readonly memorySize: number
  /** The names of what `act` says of each row beside its value. */
  readonly also: ReadonlyArray<string>
  readonly act: (at: Acting) => Acted
  /** The action that is thought best. */
  readonly greedy: (at: Seeing) => { readonly actions: Tensor; readonly memory?: Tensor }
}

export interface Seeing {
  readonly weights: Weights
  readonly observations: Tensor
  readonly recall?: Recall
}

export interface Acting extends Seeing {
  readonly noise: Tensor
  /** A scalar, where the learner has a schedule of exploration. */
  readonly exploration: Tensor
  /** Of the target network; where the learner has none, the weights themselves. */
  readonly target: Weights
}

export interface Acted {
  readonly actions: Tensor
  readonly values: Tensor
  readonly memory?: Tensor
  /** More of one number a row, to be kept: `logProbs`. */
  readonly also?: Readonly<Record<string, Tensor>>
}

/** A minibatch as a loss sees it. */
export interface Minibatch {
  readonly weights: Weights
  readonly target: Weights
  /** Of a bonus: weights that are never learnt. */
  readonly fixed: Weights
  readonly rows: number
  /** What the rollout kept of the rows, by its name: `observations`, `actions`, `logProbs`, `values`, `advantages`, … */
  readonly column: (name: string) => Tensor
  /** What an auxiliary task feeds beside the rollout, the same for every minibatch. */
  readonly given: (name: string, shape: ReadonlyArray<number>, dtype?: DType) => Tensor
  readonly recall?: Recall
}

export interface Loss {
  readonly loss: Tensor
  /** Scalars, averaged over the minibatches of an update. */
  readonly metrics: Readonly<Record<string, Tensor>>
  /** Where false, the minibatch is not applied and the update ends. */
  readonly proceed?: Tensor
}

/** One way of passing over a rollout: PPO has one, with several epochs; DAAC has two, each with its own loss. */
export interface Phase {
  readonly name: string
  readonly epochs: number
  /** The parts that a rollout is shuffled into, each epoch. */
  readonly minibatches: number
  readonly maxGradNorm: number
  readonly loss: (batch: Minibatch) => Loss
  readonly optimiser: (options: { readonly size: number; readonly learningRate: Tensor }) => Optimiser
}

/** The shape of one row of a column, and its kind. */
export interface RowKind {
  readonly shape: ReadonlyArray<number>
  readonly dtype: "f32" | "i32"
}
export type RowKinds = Readonly<Record<string, RowKind>>

/** Everything that shapes the programs. */
export interface Blueprint {
  readonly name: string
  readonly task: Task
  readonly model: Model
  readonly parameters: Layout
  readonly fixed: Layout | undefined
  readonly hasTarget: boolean
  readonly explores: boolean
  /** The scalar that a policy explores by, where it draws its actions. */
  readonly exploration?: number
  readonly steps: number
  /** Steps of a sequence, 1 without memory. */
  readonly sequence: number
  readonly rows: RowKinds
  /** How fast a parameter learns, as a share of the learning rate. */
  readonly pace?: (name: string) => number
}

export const actionKind = (space: Space): RowKind =>
  space._tag === "Discrete" ? { shape: [], dtype: "i32" } : { shape: [sizeOfSpace(space)], dtype: "f32" }

const weightsOf = ({ parameters, fixed, hasTarget }: Blueprint) => {
  const theta = state("theta", [parameters.size])
  const target = hasTarget ? state("target", [parameters.size]) : theta
  const fixedTheta = fixed === undefined ? undefined : state("fixed", [fixed.size])
  const targetState: ProgramSpec["state"] = hasTarget ? { target: { tensor: target } } : {}
  const fixedState: ProgramSpec["state"] = fixedTheta === undefined ? {} : { fixed: { tensor: fixedTheta } }
  return {
    theta,
    weights: parameters.tensorsOf(theta),
    target: parameters.tensorsOf(target),
    fixed: fixed === undefined || fixedTheta === undefined ? {} : fixed.tensorsOf(fixedTheta),
    targetState,
    fixedState,
  }
}

/** Observations and uniform noise in; actions, their values and whatever else the model says of them out. */
export const actSpec = (blueprint: Blueprint): ProgramSpec => {
  const { name, task, model, explores } = blueprint
  const { numEnvs } = task
  const { theta, weights, target, targetState } = weightsOf(blueprint)
  const observations = input("observations", [numEnvs, sizeOfSpace(task.observationSpace)])
  const noise = input("noise", [numEnvs, model.noiseSize])
  const exploration = input("exploration", [])
  const memory = input("memory", [numEnvs, model.memorySize])
  const fresh = input("fresh", [numEnvs])
  const remembers = model.memorySize > 0
  const acted = model.act({
    weights,
    target,
    observations,
    noise,
    exploration,
    ...(remembers ? { recall: { state: memory, fresh } } : {}),
  })
  return {
    name: `${name}.act`,
    inputs: {
      observations,
      noise,
      ...(explores ? { exploration } : {}),
      ...(remembers ? { memory, fresh } : {}),
    },
    state: { theta: { tensor: theta }, ...targetState },
    outputs: {
      actions: acted.actions,
      envActions: toEnvAction(task.actionSpace, acted.actions),
      ...acted.also,
      values: acted.values,
      ...(acted.memory === undefined ? {} : { nextMemory: acted.memory }),
    },
  }
}

/** A policy, for validation and deployment: greedy, or drawing its actions. With memory, that is a state of the program. */
export const policySpec = (
  blueprint: Blueprint,
  numEnvs: number,
  { sampled = false, memoryOutside = false, see = (seen) => seen }: PolicyOptions = {},
): ProgramSpec => {
  const { name, task, model, parameters, exploration = 0 } = blueprint
  const theta = state("theta", [parameters.size])
  const observations = input("observations", [numEnvs, sizeOfSpace(task.observationSpace)])
  const noise = input("noise", [numEnvs, model.noiseSize])
  const weights = parameters.tensorsOf(theta)
  const remembers = model.memorySize > 0
  const memoryShape = [numEnvs, Math.max(1, model.memorySize)]
  const memory = memoryOutside ? input("memory", memoryShape) : state("memory", memoryShape)
  // Always zero: a policy begins with an empty memory, and plays one episode.
  const fresh = constant(new Float32Array(numEnvs), [numEnvs])
  const seeing = {
    weights,
    observations: see(observations),
    ...(remembers ? { recall: { state: memory, fresh } } : {}),
  }
  const { actions, memory: next = memory } = sampled
    ? model.act({ ...seeing, noise, exploration: constant(exploration), target: weights })
    : model.greedy(seeing)
  return {
    name: `${name}.policy`,
    inputs: { observations, ...(sampled ? { noise } : {}), ...(remembers && memoryOutside ? { memory } : {}) },
    state: {
      theta: { tensor: theta },
      ...(remembers && !memoryOutside ? { memory: { tensor: memory, next } } : {}),
    },
    outputs: {
      actions: toEnvAction(task.actionSpace, actions),
      ...(remembers && memoryOutside ? { nextMemory: next } : {}),
    },
  }
}

/** Columns as the inputs of a graph, each made when it is first asked for. */
const columnInputs = ({ rows, sequence, model }: Blueprint, count: number) => {
  const inputs: Record<string, Tensor> = {}
  const views = new Map<string, Tensor>()
  const column = (name: string): Tensor => {
    const known = views.get(name)
    if (known !== undefined) return known
    const kind = rows[name]
    if (kind === undefined) return fail("column", `a rollout has no "${name}"; it has ${Object.keys(rows).join(", ")}`)
    const { shape, dtype } = kind
    inputs[name] = input(name, sequence === 1 ? [count, ...shape] : [count, sequence * sizeOf(shape)], dtype)
    const view = sequence === 1 ? inputs[name] : reshape(inputs[name], [count * sequence, ...shape])
    views.set(name, view)
    return view
  }
  const recall = (): Recall => {
    inputs.memory = input("memory", [count, model.memorySize])
    return { state: inputs.memory, fresh: column("fresh") }
  }
  return { inputs, column, recall }
}

/** The whole update as one graph: forward, loss, backward, clipping, optimiser, once a minibatch. */
export const updateSpec = (blueprint: Blueprint, phase: Phase): ProgramSpec => {
  const { name, task, parameters, steps, sequence, model } = blueprint
  const sequences = (steps * task.numEnvs) / sequence
  const batch = sequences / phase.minibatches
  const { theta, weights, target, fixed, targetState, fixedState } = weightsOf(blueprint)
  const learningRate = input("learningRate", [])
  const { inputs, column, recall } = columnInputs(blueprint, batch)
  const givens: Record<string, Tensor> = {}
  const { loss, metrics, proceed } = phase.loss({
    weights,
    target,
    fixed,
    rows: batch * sequence,
    column,
    given: (key, shape, dtype) => (givens[key] ??= input(key, shape, dtype)),
    ...(model.memorySize > 0 ? { recall: recall() } : {}),
  })

  const optimiser = phase.optimiser({ size: parameters.size, learningRate })
  const proposal = descend({ layout: parameters, theta, weights }, loss, optimiser, phase.maxGradNorm)
  const { moments } = proposal
  const next = paced(blueprint, theta, proposal.next)
  const kept = (tensor: Tensor, proposed: Tensor): Tensor =>
    proceed === undefined ? proposed : where(proceed, proposed, tensor)
  const states = Object.entries({ theta: { tensor: theta, next }, ...moments })
  return {
    name: `${name}.${phase.name}`,
    inputs: { ...inputs, ...givens, learningRate },
    state: {
      ...Object.fromEntries(states.map(([key, { tensor, next: to }]) => [key, { tensor, next: kept(tensor, to) }])),
      ...targetState,
      ...fixedState,
    },
    outputs: metrics,
    minibatches: {
      rows: sequences,
      batch,
      count: phase.epochs * phase.minibatches,
      gathered: Object.keys(inputs),
      ...(proceed === undefined ? {} : { continueWhile: proceed }),
    },
  }
}

/** Where some parameters learn at a pace of their own, they go that share of the way. */
const paced = ({ pace, parameters }: Blueprint, theta: Tensor, next: Tensor): Tensor =>
  pace === undefined ? next : add(theta, mul(constant(parameters.spread(pace)), sub(next, theta)))

/** Something said of every row of a rollout at once. */
export const rowsSpec = (
  blueprint: Blueprint,
  name: string,
  outputs: (batch: Pick<Minibatch, "weights" | "fixed" | "column">) => Readonly<Record<string, Tensor>>,
): ProgramSpec => {
  const { task, steps } = blueprint
  const { theta, weights, fixed, fixedState } = weightsOf(blueprint)
  const { inputs, column } = columnInputs({ ...blueprint, sequence: 1 }, steps * task.numEnvs)
  return {
    name: `${blueprint.name}.${name}`,
    outputs: outputs({ weights, fixed, column }),
    inputs,
    state: { theta: { tensor: theta }, ...fixedState },
  }
}

/** Several losses as one. */
export const together = (losses: ReadonlyArray<Loss>): Loss => {
  const [first, ...others] = losses
  return others.reduce(
    (sum, one) => ({
      ...sum,
      ...(one.proceed === undefined ? {} : { proceed: one.proceed }),
      loss: add(sum.loss, one.loss),
      metrics: { ...sum.metrics, ...one.metrics },
    }),
    first,
  )
}

/** All parameters of a learner, in one layout. */
export const layoutOf = (...parts: ReadonlyArray<Declarations | undefined>): Layout =>
  layout(Object.assign({}, ...parts))
