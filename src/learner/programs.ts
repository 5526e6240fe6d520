import { sizeOf } from "../env/Space.ts"
import { constant, input, state } from "../graph/ops.ts"
import type { Layout } from "../graph/Parameters.ts"
import type { ProgramSpec } from "../graph/Program.ts"
import type { Tensor } from "../graph/Tensor.ts"
import { toEnvAction } from "../model/actions.ts"
import type { Actor } from "../model/Actor.ts"
import type { Recall } from "../model/memory.ts"
import type { PolicyOptions, Task } from "./Algorithm.ts"
import { type Batch, batchInputs, type Columns, f32 } from "./Batch.ts"
import { netOf } from "./descent.ts"

/**
 * Describes the programs that all learners share: `actSpec` plays, `policySpec` is for validation and export, `batchSpec`
 * learns from a batch or evaluates one.
 */

/** Describes how a learner acts. */
interface ActOptions<Kept extends string> {
  /** The name of the algorithm; programs are called `ppo.act`, `ppo.policy`, `ppo.update`. */
  readonly name: string
  readonly task: Task
  readonly actor: Actor<Kept>
  readonly layout: Layout
  /** Whether the actor reads the weights of a target network. */
  readonly hasTarget?: boolean
  /** Whether the actor reads a scalar for its exploration, such as ε. */
  readonly explores?: boolean
}

/**
 * Describes the program that acts in all envs. It takes `observations` and `noise` and returns `envActions`, which are within
 * the bounds of the space. For a learner that keeps more of each row, it also returns `actions` as they were drawn, and every
 * column that the actor keeps.
 */
export const actSpec = <Kept extends string>(options: ActOptions<Kept>): ProgramSpec => {
  const { name, task, actor, layout, hasTarget = false, explores = false } = options
  const { numEnvs } = task
  const online = netOf(layout, "theta")
  const target = hasTarget ? netOf(layout, "target") : online
  const observations = input("observations", [numEnvs, sizeOf(task.observationSpace)])
  const noise = noiseInput(actor, numEnvs)
  const exploration = input("exploration", [])
  const remembers = actor.memorySize > 0
  const recall = { state: input("memory", [numEnvs, actor.memorySize]), fresh: input("fresh", [numEnvs]) }
  const { actions, kept, memory } = actor.act({
    weights: online.weights,
    target: target.weights,
    observations,
    noise,
    exploration,
    ...(remembers ? { recall } : {}),
  })
  const envActions = toEnvAction(task.actionSpace, actions)
  return {
    name: `${name}.act`,
    inputs: {
      observations,
      ...(actor.noiseSize > 0 ? { noise } : {}),
      ...(explores ? { exploration } : {}),
      ...(remembers ? { memory: recall.state, fresh: recall.fresh } : {}),
    },
    state: { theta: { tensor: online.theta }, ...(hasTarget ? { target: { tensor: target.theta } } : {}) },
    outputs: {
      ...(actor.keeps.length > 0 ? { actions } : {}),
      envActions,
      ...kept,
      ...(memory === undefined ? {} : { nextMemory: memory }),
    },
  }
}

/**
 * Describes the policy for validation and export, for any number of envs. It takes the best action, or draws actions with the
 * exploration of the end of the run. A memory is a state of the program, or an input and an output of it (`externalMemory`).
 */
export const policySpec = <Kept extends string>(
  { name, task, actor, layout, exploration = 0 }: ActOptions<Kept> & { readonly exploration?: number | undefined },
  numEnvs: number,
  { sampled = false, externalMemory = false, preprocess = (observations) => observations }: PolicyOptions = {},
): ProgramSpec => {
  const { theta, weights } = netOf(layout, "theta")
  const observations = input("observations", [numEnvs, sizeOf(task.observationSpace)])
  const noise = noiseInput(actor, numEnvs)
  const draws = sampled && actor.noiseSize > 0
  const remembers = actor.memorySize > 0
  const memoryShape = [numEnvs, Math.max(1, actor.memorySize)]
  const memory = externalMemory ? input("memory", memoryShape) : state("memory", memoryShape)
  // This is always zero, because a policy starts with an empty memory and plays one episode.
  const fresh = constant(new Float32Array(numEnvs), [numEnvs])
  const observing = {
    weights,
    observations: preprocess(observations),
    ...(remembers ? { recall: { state: memory, fresh } } : {}),
  }
  const { actions, memory: next = memory } = draws
    ? actor.act({ ...observing, noise, exploration: constant(exploration), target: weights })
    : actor.greedy(observing)
  return {
    name: `${name}.policy`,
    inputs: { observations, ...(draws ? { noise } : {}), ...(remembers && externalMemory ? { memory } : {}) },
    state: {
      theta: { tensor: theta },
      ...(remembers && !externalMemory ? { memory: { tensor: memory, next } } : {}),
    },
    outputs: {
      actions: toEnvAction(task.actionSpace, actions),
      ...(remembers && externalMemory ? { nextMemory: next } : {}),
    },
  }
}

const noiseInput = ({ noiseSize }: Actor<string>, numEnvs: number): Tensor =>
  input("noise", [numEnvs, Math.max(1, noiseSize)])

/** The outputs of a program that reads a batch. */
interface BatchProgram {
  /** The program's states, and the next value of those that change. */
  readonly states: Readonly<Record<string, { readonly tensor: Tensor; readonly next?: Tensor }>>
  readonly outputs: Readonly<Record<string, Tensor>>
  /** A condition: the update ends after a minibatch for which it is false. */
  readonly continueWhile?: Tensor | undefined
}

/** The inputs of a program that reads a batch. */
interface BatchReader<C> {
  readonly batch: Batch<C>
  /** Returns an input for a number that is set once for the whole update, such as the learning rate. */
  readonly scalar: (name: string) => Tensor
  /** The memory before each sequence, for a learner whose actor has a memory. */
  readonly recall: Recall | undefined
}

interface BatchOptions<C extends Columns> {
  readonly name: string
  readonly columns: C
  /** The number of sequences in a minibatch, and the number of steps of each. Without a memory, a sequence is one row. */
  readonly sequences: number
  readonly steps?: number
  readonly memorySize?: number
  /**
   * The program runs `count` times, each time on other sequences with `rows` rows in total. If this is undefined, it runs
   * once on all rows.
   */
  readonly minibatches?: { readonly rows: number; readonly count: number } | undefined
  readonly build: (reader: BatchReader<C>) => BatchProgram
}

/** Describes a program over a batch: an update of the weights, or an evaluation of all rows of a rollout. */
export const batchSpec = <C extends Columns>(options: BatchOptions<C>): ProgramSpec => {
  const { name, columns, sequences, steps = 1, memorySize = 0, minibatches } = options
  const { batch, inputs, gathered } = batchInputs(columns, sequences, steps)
  const remembered = batchInputs(memoryColumns(memorySize), sequences, steps)
  const scalars: Record<string, Tensor> = {}
  const { states, outputs, continueWhile } = options.build({
    batch,
    scalar: (key) => (scalars[key] ??= input(key, [])),
    recall: memorySize === 0 ? undefined : { state: remembered.batch.memory, fresh: remembered.batch.fresh },
  })
  return {
    name,
    inputs: { ...inputs, ...remembered.inputs, ...scalars },
    state: states,
    outputs,
    ...(minibatches === undefined
      ? {}
      : {
          minibatches: {
            ...minibatches,
            batch: sequences,
            gathered: [...gathered(), ...remembered.gathered()],
            ...(continueWhile === undefined ? {} : { continueWhile }),
          },
        }),
  }
}

/** Declares the columns that a memory adds: its state before each sequence, and 1 in the rows that begin an episode. */
const memoryColumns = (size: number) => ({ memory: { ...f32(size), per: "sequence" }, fresh: f32() }) as const
