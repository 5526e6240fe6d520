import { Effect, type Scope } from "effect"
import { Backend, type Program } from "../../backend/Backend.ts"
import { ConfigError } from "../../config/Config.ts"
import { sizeOf } from "../../env/Space.ts"
import { indicesFeed } from "../../graph/Program.ts"
import { gae } from "../../returns/gae.ts"
import { stream } from "../../rng/Rng.ts"
import type { Learner, LearnerError, LearnerState, NamedArrays, Position, SetupError, Task } from "../Algorithm.ts"
import { build } from "../build.ts"
import { drive, type Steps } from "../drive.ts"
import { Averages } from "../Averages.ts"
import { floatsOf, learnerPolicy, namedVector, onnxPolicy, restoreState, statesOf } from "../learnerState.ts"
import { type Auxiliary } from "./Auxiliary.ts"
import { type Bonus, makeCuriosity } from "./Bonus.ts"
import {
  actionKind,
  actSpec,
  type Blueprint,
  layoutOf,
  type Model,
  type Phase,
  policySpec,
  together,
  updateSpec,
} from "./programs.ts"
import { type Columns, makeRollout, type Rollout } from "./Rollout.ts"

/**
 * What A2C, PPO and their kin share: act with the current policy for a while, turn the rewards into advantages and
 * value targets, learn from exactly that experience, forget it. They differ in their model, in their losses, and in how
 * often they pass over a rollout.
 */
export interface RolloutDefinition {
  readonly name: string
  readonly config: RolloutConfig
  readonly model: Model
  readonly phases: ReadonlyArray<Phase>
  /** A reward that the learner gives itself. */
  readonly bonus?: Bonus | undefined
  /** Tasks that are learnt beside, from a memory of what was seen. */
  readonly auxiliary?: Auxiliary | undefined
  /** The scalar that the model explores by, after so many env steps. */
  readonly exploration?: (step: number) => number
  /** A second set of weights that follows the first every so many env steps. */
  readonly target?: { readonly everySteps: number }
}

export interface RolloutConfig {
  readonly learningRate: number
  readonly schedule: "constant" | "linear"
  /** Env steps that each env takes between updates. */
  readonly nsteps: number
  /** Steps of a sequence, where the model has a memory; 0 is the whole rollout. */
  readonly sequence?: number
  readonly gamma: number
  readonly lambda: number
  readonly noiseRepeat?: number
}

/** Sets such a learner up for a task: compiles its programs and draws its first weights. */
export const rolloutLearner = Effect.fnUntraced(function* (
  definition: RolloutDefinition,
  task: Task,
): Effect.fn.Return<Learner, SetupError, Backend | Scope.Scope> {
  const { config, name, model, phases, bonus, auxiliary } = definition
  const { numEnvs, seed } = task
  const sequence = yield* checkedSequence(definition, task)
  const rows = config.nsteps * numEnvs
  const backend = yield* Backend

  const blueprint: Blueprint = {
    name,
    task,
    model,
    parameters: yield* build(() => layoutOf(model.parameters, bonus?.parameters, auxiliary?.parameters)),
    fixed: bonus === undefined || bonus.fixed === undefined ? undefined : layoutOf(bonus.fixed),
    hasTarget: definition.target !== undefined,
    explores: definition.exploration !== undefined,
    exploration: definition.exploration?.(task.totalSteps) ?? 0,
    ...paceOf(bonus),
    steps: config.nsteps,
    sequence,
    rows: rowKindsOf(definition, task),
  }
  const { parameters } = blueprint
  const act = yield* backend.compile(yield* build(() => actSpec(blueprint)))
  const whole: Phase["loss"] = (batch) =>
    together([phases[0], bonus, auxiliary].flatMap((part) => (part === undefined ? [] : [part.loss(batch)])))
  const updates = yield* Effect.forEach(phases, (phase, index) =>
    Effect.gen(function* () {
      const spec = yield* build(() => updateSpec(blueprint, index === 0 ? { ...phase, loss: whole } : phase))
      const program = yield* backend.compile(spec)
      const prefix = phases.length === 1 ? "" : `${phase.name}.`
      const optimiser = statesOf(program, spec, ["theta", "target", "fixed"], prefix)
      return { phase, program, optimiser, gathered: spec.minibatches?.gathered ?? [] }
    }),
  )
  const [{ program: first }] = updates
  const rollout = makeRollout({
    task,
    act,
    steps: config.nsteps,
    sequence,
    noiseSize: model.noiseSize,
    noiseRepeat: config.noiseRepeat ?? 1,
    memorySize: model.memorySize,
    columns: Object.fromEntries(
      ["advantages", "targets", ...Object.keys(bonus?.columns ?? {})].map((key) => [
        key,
        blueprint.rows[key].shape.reduce((product, length) => product * length, 1),
      ]),
    ),
    // A feed in sequences has another order of rows.
    feeds: sequence === 1 ? first.feeds : {},
  })
  const curiosity = bonus === undefined ? undefined : yield* makeCuriosity(bonus, blueprint, rollout)
  const beside = auxiliary?.start(task, rollout)

  const programs = [
    act,
    ...updates.map(({ program }) => program),
    ...(curiosity === undefined ? [] : [curiosity.program]),
  ]
  const setWeights = (theta: Float32Array, except?: Program) =>
    Effect.forEach(programs, (program) => (program === except ? Effect.void : program.write("theta", theta)))
  const targeted = definition.target === undefined ? [] : [act, ...updates.map(({ program }) => program)]
  const setTarget = (theta: Float32Array) => Effect.forEach(targeted, (program) => program.write("target", theta))
  const firstWeights = parameters.initialise(stream(seed, "weights"))
  yield* setWeights(firstWeights)
  yield* setTarget(firstWeights)
  if (blueprint.fixed !== undefined) {
    const fixed = blueprint.fixed.initialise(stream(seed, "fixed"))
    for (const program of programs) if (program !== act) yield* program.write("fixed", fixed)
  }

  const averages = new Averages()
  const iterations = Math.ceil(task.totalSteps / rows)
  const order = new Int32Array(rows / sequence)
  const advantages = floatsOf(rollout.columns, "advantages")
  const targets = floatsOf(rollout.columns, "targets")
  const values = floatsOf(rollout.columns, "values")

  const estimate = (): void => {
    const { rewards, terminated, truncated, atCuts, last } = rollout
    const { gamma, lambda } = config
    const cut = rollout.cuts() > 0 ? { truncated, truncatedValues: atCuts.values } : {}
    gae({ rewards, values, lastValues: last.values, terminated, ...cut, gamma, lambda, out: advantages, targets })
  }

  const learn = function* (iteration: number, learningRate: number): Steps<void> {
    if (curiosity !== undefined) yield* curiosity.reward(iteration)
    estimate()
    curiosity?.combine()
    beside?.prepare(iteration, first.feeds)
    const shuffle = stream(seed, "minibatches", iteration)
    for (const { program, phase, gathered } of updates) {
      fill(program, gathered, rollout, sequence)
      const indices = program.feeds[indicesFeed]
      for (let epoch = 0; epoch < phase.epochs; epoch++) {
        shuffle.permutation(order)
        indices.set(order, epoch * order.length)
      }
      program.feeds.learningRate[0] = learningRate
    }
  }

  const final = updates[updates.length - 1].program
  const update = Effect.fnUntraced(function* ({ iteration }: Position): Effect.fn.Return<void, LearnerError> {
    const remaining = config.schedule === "linear" ? 1 - iteration / iterations : 1
    const learningRate = config.learningRate * Math.max(0, remaining)
    yield* drive(() => learn(iteration, learningRate))
    averages.add("charts/learning_rate", learningRate)
    for (const [index, { program }] of updates.entries()) {
      yield* program.run
      averages.addResults(program)
      const following = updates[index + 1]?.program
      if (following !== undefined) yield* following.write("theta", yield* program.read("theta"))
    }
    yield* averages.checkFinite(`update ${iteration + 1}`)
    yield* setWeights(yield* final.read("theta"), final)
    averages.add("losses/explained_variance", explainedVariance(values, targets))
    averages.addAll(curiosity?.metrics())
  })

  const { exploration } = definition
  return {
    devices: Object.fromEntries(programs.map((program) => [program.name, program.device])),
    rollout: (envs, { iteration, step }) =>
      drive(function* () {
        if (iteration === 0) curiosity?.warmUp(envs)
        if (exploration !== undefined) act.feeds.exploration[0] = exploration(step)
        yield* rollout.collect(envs, iteration)
        beside?.remember()
        return rows
      }),
    update,
    metrics: () => averages.take(),
    ...(definition.target === undefined
      ? {}
      : {
          target: {
            everySteps: definition.target.everySteps,
            update: Effect.asVoid(Effect.flatMap(final.read("theta"), setTarget)),
          },
        }),
    policy: (count, options) =>
      learnerPolicy(backend, () => policySpec(blueprint, count, options), final.read("theta")),
    exportPolicy: (see = (seen) => seen) =>
      onnxPolicy(() => policySpec(blueprint, 1, { see, memoryOutside: true }), final.read("theta")),
    ...(model.dense === undefined ? {} : { dense: model.dense }),
    weights: Effect.map(final.read("theta"), parameters.toNamed),
    state: Effect.gen(function* () {
      let optimizer: NamedArrays = {}
      for (const { optimiser } of updates) optimizer = { ...optimizer, ...(yield* optimiser.read) }
      const target: NamedArrays = targeted.length === 0 ? {} : { target: namedVector(yield* act.read("target")) }
      const { memory, fresh } = rollout.remembered ?? {}
      const remembered: NamedArrays =
        memory === undefined || fresh === undefined ? {} : { memory: namedVector(memory), fresh: namedVector(fresh) }
      const learner: NamedArrays = { ...target, ...remembered, ...curiosity?.state() }
      const files: LearnerState = {
        optimizer,
        ...(Object.keys(learner).length === 0 ? {} : { learner }),
        ...(beside === undefined ? {} : { replay: beside.state() }),
      }
      return files
    }),
    restore: (weights, saved) =>
      restoreState(function* (files) {
        yield* setWeights(yield* files.weights(parameters, weights))
        for (const { optimiser } of updates) yield* optimiser.restore(files, "optimizer")
        if (targeted.length > 0) yield* setTarget(yield* files.floats("learner", "target", [parameters.size]))
        if (rollout.remembered !== undefined) {
          const { memory, fresh } = rollout.remembered
          memory.set(yield* files.floats("learner", "memory", [memory.length]))
          fresh.set(yield* files.floats("learner", "fresh", [fresh.length]))
        }
        if (curiosity !== undefined) yield* files.use("learner", curiosity.restore)
        if (beside !== undefined) yield* files.use("replay", beside.restore)
      }, saved),
  }
})

const checkedSequence = (
  { name, config, model, phases }: RolloutDefinition,
  { numEnvs }: Task,
): Effect.Effect<number, ConfigError> => {
  const wrong = (key: string, problem: string) =>
    Effect.fail(ConfigError.at({ source: name, prefix: ["algorithm"] }, key, problem))
  const { nsteps, sequence: asked = 0 } = config
  if (asked > 0 && model.memorySize === 0)
    return wrong("sequence", `${asked} steps of a memory, but algorithm.lstm is 0`)
  const sequence = model.memorySize === 0 ? 1 : asked === 0 ? nsteps : asked
  if (config.nsteps % sequence !== 0) {
    return wrong("sequence", `expected a divisor of the rollout's ${config.nsteps} steps, found ${sequence}`)
  }
  const sequences = (config.nsteps * numEnvs) / sequence
  for (const { minibatches } of phases) {
    if (sequences % minibatches === 0) continue
    const what =
      sequence === 1
        ? `${numEnvs} envs × ${config.nsteps} steps = ${sequences} rows`
        : `${numEnvs} envs × ${config.nsteps / sequence} sequences of ${sequence} steps = ${sequences} sequences`
    return wrong("minibatches", `expected a divisor of a rollout's ${what}, found ${minibatches}`)
  }
  return Effect.succeed(sequence)
}

const paceOf = (bonus: Bonus | undefined): Pick<Blueprint, "pace"> => {
  const { parameters = {}, pace = 1 } = bonus ?? {}
  return pace === 1 ? {} : { pace: (name) => (name in parameters ? pace : 1) }
}

const scalar = { shape: [], dtype: "f32" } as const

const rowKindsOf = ({ model, bonus }: RolloutDefinition, task: Task): Blueprint["rows"] => ({
  observations: { shape: [sizeOf(task.observationSpace)], dtype: "f32" },
  actions: actionKind(task.actionSpace),
  values: scalar,
  ...Object.fromEntries(model.also.map((key) => [key, scalar])),
  advantages: scalar,
  targets: scalar,
  ...(model.memorySize > 0 ? { fresh: scalar } : {}),
  ...Object.fromEntries(
    Object.entries(bonus?.columns ?? {}).map(([key, shape]) => [key, { shape, dtype: "f32" as const }]),
  ),
})

/** Brings a rollout's columns into the order of a program's feeds: as they are, or sequence after sequence. */
const fill = (program: Program, names: ReadonlyArray<string>, rollout: Rollout, sequence: number): void => {
  const columns: Columns = rollout.columns
  for (const name of names) {
    const column = columns[name]
    const feed = program.feeds[name]
    if (feed === column) continue
    if (sequence === 1) feed.set(column)
    else arrange(column, feed, rollout.numEnvs, name === "memory" ? rollout.steps / sequence : rollout.steps)
  }
}

/** From [steps, envs, size] to [envs, steps, size]: an env's sequences follow each other. */
const arrange = (
  column: Float32Array | Int32Array,
  feed: Program["feeds"][string],
  envs: number,
  steps: number,
): void => {
  const size = column.length / (envs * steps)
  for (let step = 0; step < steps; step++) {
    for (let env = 0; env < envs; env++) {
      const from = (step * envs + env) * size
      const to = (env * steps + step) * size
      for (let at = 0; at < size; at++) feed[to + at] = column[from + at]
    }
  }
}

/** 1 − Var(targets − values) / Var(targets): 1 is a critic that knows, 0 one that says nothing. */
export const explainedVariance = (values: Float32Array, targets: Float32Array): number => {
  const n = values.length
  let sum = 0
  let sumOfSquares = 0
  let errorSum = 0
  let errorSquares = 0
  for (let index = 0; index < n; index++) {
    const target = targets[index]
    const error = target - values[index]
    sum += target
    sumOfSquares += target * target
    errorSum += error
    errorSquares += error * error
  }
  const variance = sumOfSquares / n - (sum / n) ** 2
  return variance > 0 ? 1 - (errorSquares / n - (errorSum / n) ** 2) / variance : 0
}
