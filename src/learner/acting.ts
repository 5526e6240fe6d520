import { Effect } from "effect"
import type { Backend, BackendError } from "../backend/Backend.ts"
import { sizeOf } from "../env/Space.ts"
import { toOnnx } from "../graph/onnx/export.ts"
import { constant, input, state } from "../graph/ops.ts"
import type { Layout } from "../graph/Parameters.ts"
import type { ProgramSpec } from "../graph/Program.ts"
import type { Schedule } from "../graph/schedules.ts"
import { sizeOf as elements } from "../graph/Tensor.ts"
import { toEnvAction } from "../model/actions.ts"
import type { Actor } from "../model/Actor.ts"
import type { Learner, Policy, PolicyOptions, Task } from "./Algorithm.ts"
import { build, netOf } from "./graphs.ts"
import { floatsOf, numbersOf } from "./learnerState.ts"

/** Describes how a learner acts: `actSpec` is its program in play, and `policies` are for validation and export. */
export interface Acting {
  /** The name of the algorithm; programs are called `ppo.act`, `ppo.policy`, `ppo.update`. */
  readonly name: string
  readonly task: Task
  readonly actor: Actor<string>
  readonly layout: Layout
  /** Whether the actor reads the weights of a target network. */
  readonly hasTarget?: boolean
  /** The schedule of the scalar by which the actor explores, such as ε; undefined if it needs none. */
  readonly exploration?: Schedule | undefined
}

/**
 * Describes the program that acts in all envs, from `observations` and `noise` to `envActions` within the bounds of the space.
 * For a learner that keeps more of each row, it also returns `actions` as they were drawn, and the columns that it keeps.
 */
export const actSpec = ({ name, task, actor, layout, hasTarget = false, exploration }: Acting): ProgramSpec => {
  const { numEnvs } = task
  const online = netOf(layout, "theta")
  const target = hasTarget ? netOf(layout, "target") : online
  const observations = input("observations", [numEnvs, sizeOf(task.observationSpace)])
  const noise = noiseInput(actor, numEnvs)
  const explorationInput = input("exploration", [])
  const remembers = actor.memorySize > 0
  const recall = { state: input("memory", [numEnvs, actor.memorySize]), fresh: input("fresh", [numEnvs]) }
  const { actions, kept, memory } = actor.act({
    weights: online.weights,
    target: target.weights,
    observations,
    noise,
    exploration: explorationInput,
    recall: remembers ? recall : undefined,
  })
  return {
    name: `${name}.act`,
    inputs: {
      observations,
      ...(actor.noiseSize > 0 ? { noise } : {}),
      ...(exploration === undefined ? {} : { exploration: explorationInput }),
      ...(remembers ? { memory: recall.state, fresh: recall.fresh } : {}),
    },
    state: { theta: { tensor: online.theta }, ...(hasTarget ? { target: { tensor: target.theta } } : {}) },
    outputs: {
      ...(actor.keeps.length > 0 ? { actions } : {}),
      envActions: toEnvAction(task.actionSpace, actions),
      ...kept,
      ...(memory === undefined ? {} : { nextMemory: memory }),
    },
  }
}

/**
 * Describes the policy for validation and export, for any number of envs. It takes the best action, or draws actions with the
 * exploration of the end of the run. A memory is a state of the program, or an input and an output of it (`externalMemory`).
 */
const policySpec = (
  { name, task, actor, layout, exploration }: Acting,
  numEnvs: number,
  { sampled = false, externalMemory = false, preprocess = (observations) => observations }: PolicyOptions = {},
): ProgramSpec => {
  const { theta, weights } = netOf(layout, "theta")
  const observations = input("observations", [numEnvs, sizeOf(task.observationSpace)])
  const noise = noiseInput(actor, numEnvs)
  const draws = sampled && actor.noiseSize > 0
  const remembers = actor.memorySize > 0
  const [isInput, isState] = [remembers && externalMemory, remembers && !externalMemory]
  const memoryShape = [numEnvs, Math.max(1, actor.memorySize)]
  const memory = externalMemory ? input("memory", memoryShape) : state("memory", memoryShape)
  // This is always zero, because a policy starts with an empty memory and plays one episode.
  const fresh = constant(new Float32Array(numEnvs), [numEnvs])
  const recall = remembers ? { state: memory, fresh } : undefined
  const observing = { weights, observations: preprocess(observations), recall }
  const { actions, memory: next = memory } = draws
    ? actor.act({ ...observing, noise, exploration: constant(exploration?.(1) ?? 0), target: weights })
    : actor.greedy(observing)
  return {
    name: `${name}.policy`,
    inputs: { observations, ...(draws ? { noise } : {}), ...(isInput ? { memory } : {}) },
    state: { theta: { tensor: theta }, ...(isState ? { memory: { tensor: memory, next } } : {}) },
    outputs: { actions: toEnvAction(task.actionSpace, actions), ...(isInput ? { nextMemory: next } : {}) },
  }
}

const noiseInput = ({ noiseSize }: Actor<string>, numEnvs: number) => input("noise", [numEnvs, Math.max(1, noiseSize)])

/** Makes the policies of a learner, which take its current weights. The memory of a policy, if any, begins as zeros. */
export const policies = (
  backend: Backend["Service"],
  acting: Acting,
  currentWeights: Effect.Effect<Float32Array, BackendError>,
): Pick<Learner, "policy" | "exportPolicy" | "dense"> => ({
  policy: Effect.fnUntraced(function* (numEnvs, options) {
    const spec = yield* build(() => policySpec(acting, numEnvs, options))
    const program = yield* backend.compile(spec)
    const memories = Object.entries(spec.state).filter(([name]) => name !== "theta")
    return {
      program,
      observations: floatsOf(program.feeds, "observations"),
      noise: program.feeds.noise === undefined ? undefined : floatsOf(program.feeds, "noise"),
      actions: numbersOf(program.results, "actions"),
      refresh: Effect.gen(function* () {
        yield* program.write("theta", yield* currentWeights)
        for (const [name, { tensor }] of memories) yield* program.write(name, new Float32Array(elements(tensor.shape)))
      }),
    } satisfies Policy
  }),
  exportPolicy: (preprocess = (observations) => observations) =>
    Effect.flatMap(currentWeights, (theta) =>
      build(() =>
        toOnnx(policySpec(acting, 1, { preprocess, externalMemory: true }), { weightsAsInitializers: { theta } }),
      ),
    ),
  ...(acting.actor.dense === undefined ? {} : { dense: acting.actor.dense }),
})
