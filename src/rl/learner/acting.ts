/**
 * Describes the programs that choose actions: `actSpec` for rollouts, `policies` for validations and exports. Learners
 * use both. `theta` is the flat vector of all weights of a network.
 */
import { Effect } from "effect"
import type { Backend, BackendError } from "../../tensor/backend/Backend.ts"
import { sizeOf } from "../env/Space.ts"
import { encodeNodes } from "../../tensor/graph/encoded.ts"
import { type OnnxTemplate, onnxTemplate } from "../../tensor/graph/onnx/export.ts"
import { constant, input, state } from "../../tensor/graph/ops.ts"
import type { ParameterLayout } from "../../tensor/graph/Parameters.ts"
import type { ProgramSpec } from "../../tensor/graph/Program.ts"
import type { Schedule } from "../../tensor/graph/schedules.ts"
import { replaced } from "../../tensor/graph/replaced.ts"
import { sizeOf as elements, type Tensor } from "../../tensor/graph/Tensor.ts"
import { toEnvAction } from "../model/actions.ts"
import type { Actor } from "../model/Actor.ts"
import type { Learner, Policy, PolicyGraph, PolicyOptions, Task } from "./Learner.ts"
import { build, netOf } from "./graphs.ts"
import { floatsOf, numbersOf } from "./learnerState.ts"

/** The parts of a learner from which `actSpec` and `policies` build its acting programs. */
interface ActingParts {
  /** The name of the algorithm; programs are called `ppo.act`, `ppo.policy`, `ppo.update`. */
  readonly name: string
  readonly task: Task
  readonly actor: Actor<string>
  readonly layout: ParameterLayout
  /** Whether the actor reads the weights of a target network. */
  readonly hasTarget?: boolean
  /** The schedule of the scalar by which the actor explores, such as ε; undefined if the actor reads no such scalar. */
  readonly exploration?: Schedule | undefined
}

/**
 * Describes the program that chooses the actions of a rollout, for all envs at once: from `observations` and `noise` it
 * computes `envActions`, clipped to the bounds of the action space. For an actor with `keeps` (names of numbers that
 * the update needs, such as values), the program also returns these numbers, and the actions before clipping.
 */
export const actSpec = ({ name, task, actor, layout, hasTarget = false, exploration }: ActingParts): ProgramSpec => {
  const { numEnvs } = task
  const online = netOf(layout, "theta")
  const target = hasTarget ? netOf(layout, "target") : online
  const observations = input("observations", [numEnvs, sizeOf(task.observationSpace)])
  const noise = noiseInput(actor, numEnvs)
  const explorationInput = input("exploration", [])
  const remembers = actor.memorySize > 0
  const recall = { state: input("memory", [numEnvs, actor.memorySize]), fresh: input("fresh", [numEnvs]) }
  const { processSize = 0 } = actor
  const process = processSize > 0 ? input("process", [numEnvs, processSize]) : undefined
  const { actions, kept, memory } = actor.act({
    weights: online.weights,
    target: target.weights,
    observations,
    noise,
    exploration: explorationInput,
    process,
    recall: remembers ? recall : undefined,
  })
  return {
    name: `${name}.act`,
    inputs: {
      observations,
      ...(actor.noiseSize > 0 ? { noise } : {}),
      ...(exploration === undefined ? {} : { exploration: explorationInput }),
      ...(process === undefined ? {} : { process }),
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

/** The parts of a policy's program that only exports have. */
interface ExportedPolicy {
  /** Prepares observations, by numbers that are states of the program. */
  readonly prepare?: ((observations: Tensor) => PreparedObservations) | undefined
  /** Whether the program also returns the actor's outputs besides actions. */
  readonly withOutputs?: boolean
}

interface PreparedObservations {
  readonly observations: Tensor
  readonly state: ProgramSpec["state"]
}

/**
 * Describes the policy's program for validation or export, which chooses an action in each of `numEnvs` envs: the best
 * one, or with `sampled` one drawn with the exploration of the end of the run. The memory of a recurrent actor is a
 * state of the program, or with `externalMemory` an input and an output of it.
 */
const policySpec = (
  { name, task, actor, layout, exploration }: ActingParts,
  numEnvs: number,
  { sampled = false, externalMemory = false }: PolicyOptions = {},
  { prepare = (observations) => ({ observations, state: {} }), withOutputs = false }: ExportedPolicy = {},
): ProgramSpec => {
  const { theta, weights } = netOf(layout, "theta")
  const observations = input("observations", [numEnvs, sizeOf(task.observationSpace)])
  const noise = noiseInput(actor, numEnvs)
  const draws = sampled && actor.noiseSize > 0
  const remembers = actor.memorySize > 0
  const [isInput, isState] = [remembers && externalMemory, remembers && !externalMemory]
  const memoryShape = [numEnvs, Math.max(1, actor.memorySize)]
  const memory = externalMemory ? input("memory", memoryShape) : state("memory", memoryShape)
  // `fresh` is 1 where an episode begins, which empties the memory. In a policy it is always 0, since the memory starts
  // empty.
  const fresh = constant(new Float32Array(numEnvs), [numEnvs])
  const recall = remembers ? { state: memory, fresh } : undefined
  const prepared = prepare(observations)
  const observing = { weights, observations: prepared.observations, recall }
  const chosen: ReturnType<typeof actor.greedy> = draws
    ? actor.act({ ...observing, noise, exploration: constant(exploration?.(1) ?? 0), target: weights })
    : actor.greedy(observing)
  const { actions, memory: next = memory, outputs } = chosen
  return {
    name: `${name}.policy`,
    inputs: { observations, ...(draws ? { noise } : {}), ...(isInput ? { memory } : {}) },
    state: { theta: { tensor: theta }, ...prepared.state, ...(isState ? { memory: { tensor: memory, next } } : {}) },
    outputs: {
      actions: toEnvAction(task.actionSpace, actions),
      ...(isInput ? { nextMemory: next } : {}),
      ...(withOutputs ? outputs?.() : {}),
    },
  }
}

/** Makes the input of an actor's random numbers. The callers leave it out if the actor reads none. */
const noiseInput = ({ noiseSize }: Actor<string>, numEnvs: number) => input("noise", [numEnvs, Math.max(1, noiseSize)])

/** Returns the functions of a learner that compile or export its policy with the current weights. */
export const policies = (
  backend: Backend["Service"],
  acting: ActingParts,
  currentWeights: Effect.Effect<Float32Array, BackendError>,
): Pick<Learner, "exportPolicy" | "policyGraph" | "dense"> & Required<Pick<Learner, "policy">> => {
  // Filling in weights is far quicker than making a template; a training exports at every checkpoint.
  const templates = new Map<string, OnnxTemplate>()
  return {
    policy: Effect.fnUntraced(function* (numEnvs, options) {
      const spec = yield* build(() => policySpec(acting, numEnvs, options))
      const program = yield* backend.compile(spec)
      const memories = Object.entries(spec.state).filter(([name]) => name !== "theta")
      return {
        program,
        observations: floatsOf(program.feeds, "observations"),
        noise: program.feeds.noise === undefined ? undefined : floatsOf(program.feeds, "noise"),
        actions: numbersOf(program.results, "actions"),
        weights: { read: program.read("theta"), write: (weights) => program.write("theta", weights) },
        refresh: Effect.gen(function* () {
          yield* program.write("theta", yield* currentWeights)
          for (const [name, { tensor }] of memories)
            yield* program.write(name, new Float32Array(elements(tensor.shape)))
        }),
      } satisfies Policy
    }),
    exportPolicy: (preprocess, about) =>
      Effect.gen(function* () {
        const prepared =
          preprocess && (yield* build(() => preparedBy(preprocess, sizeOf(acting.task.observationSpace))))
        const key = prepared?.key ?? ""
        const template = templates.get(key) ?? (yield* templateOf(acting, prepared?.prepare))
        templates.set(key, template)
        const theta = yield* currentWeights
        return yield* build(() => template({ theta, ...prepared?.numbers }, about))
      }),
    policyGraph: Effect.flatMap(currentWeights, (theta) =>
      build((): PolicyGraph => ({ spec: policySpec(acting, 1, { externalMemory: true }), states: { theta } })),
    ),
    ...(acting.actor.dense === undefined ? {} : { dense: acting.actor.dense }),
  }
}

/**
 * Makes the ONNX model of a policy, for any number of rows. Only its main graph returns more than actions; the programs
 * in its metadata do not.
 */
const templateOf = (acting: ActingParts, prepare: ExportedPolicy["prepare"]) => {
  const specOf = (rows: number, withOutputs: boolean, sampled = false): ProgramSpec =>
    policySpec(acting, rows, { externalMemory: true, sampled }, { prepare, withOutputs })
  const templateFor = (spec: Parameters<typeof onnxTemplate>[0]) =>
    build(() =>
      onnxTemplate(spec, {
        main: specOf(1, false),
        ...(acting.actor.noiseSize > 0 ? { sampled: specOf(1, false, true) } : {}),
      }),
    )
  // An actor of the user's own may only work with one row.
  return Effect.catchTag(
    templateFor((rows) => specOf(rows, true)),
    "GraphError",
    () => templateFor(specOf(1, true)),
  )
}

/**
 * Turns the constants of `preprocess` into states, because their numbers change from one export to the next. `key` is
 * equal for graphs that differ only in these numbers.
 */
const preparedBy = (preprocess: NonNullable<Parameters<NonNullable<Learner["exportPolicy"]>>[0]>, size: number) => {
  const numbers: Record<string, Float32Array> = {}
  const prepare = (observations: Tensor): PreparedObservations => {
    const states: Record<string, { readonly tensor: Tensor }> = {}
    const before = preprocess(observations)
    const replacementOf = replaced([before], ({ op, shape }) => {
      if (op.kind !== "constant" || !(op.data instanceof Float32Array)) return undefined
      const name = `observations.${Object.keys(states).length}`
      numbers[name] = op.data
      const tensor = state(name, shape)
      states[name] = { tensor }
      return tensor
    })
    return { observations: replacementOf(before), state: states }
  }
  const { nodes, constants } = encodeNodes([prepare(input("observations", [1, size])).observations])
  return { key: JSON.stringify([nodes, ...constants]), numbers, prepare }
}
