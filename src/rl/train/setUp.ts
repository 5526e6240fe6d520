/**
 * Prepares a planned training: makes its envs, its compiled learner and its validator. It writes no files. `Train.ts`
 * calls it before the run's folder is created.
 */
import { Effect, Scope } from "effect"
import type { Learner, LearnerError, SetupError } from "../learner/Learner.ts"
import { learnerOf } from "../learner/learnerOf.ts"
import { Backend, type BackendError } from "../../tensor/backend/Backend.ts"
import { ConfigError, display, isPlain, snakeCase } from "../../base/config/Config.ts"
import { oneLine } from "../../base/text/text.ts"
import { rowSpaceOf } from "../env/Env.ts"
import { type EnvError, invalid } from "../../base/EnvError.ts"
import { graphOf } from "../env/EnvGraph.ts"
import { goalsOf } from "../env/GoalEnv.ts"
import * as Normalise from "../env/Normalise.ts"
import { Trainee, type TraineeService } from "../env/multi/Trainee.ts"
import { sizeOf } from "../env/Space.ts"
import { GraphError } from "../../tensor/graph/GraphError.ts"
import type { CurrentRun } from "../../run/CurrentRun.ts"
import { evaluationOf } from "../../run/evaluation.ts"
import type { SentTraining } from "../../run/spread/SentTraining.ts"
import type { RunStoreError } from "../../run/store/RunStoreError.ts"
import { CheckpointRequest } from "./validate.ts"
import { type TrainingEnvs, trainingEnvs, validationBatches } from "./envs.ts"
import type { Plan } from "./plan.ts"
import type { TrainingState } from "./TrainingState.ts"
import { misfit } from "./misfit.ts"
import { makeStepFolder, type WriteStepFolder } from "./stepFolder.ts"
import { Current as OwnValidator } from "./Validator.ts"
import { checkVideos } from "./validation/videos.ts"
import { makeOwnValidator } from "./validation/ownValidator.ts"
import { makeValidator, shares, type PolicyValidator } from "./validation/PolicyValidator.ts"

/** A training that is ready to start: its plan, its envs and its compiled learner. */
export interface Training {
  readonly plan: Plan
  readonly envs: TrainingEnvs
  readonly learner: Learner
  readonly validator: PolicyValidator | undefined
  /** The form in which other machines get this training to play its validations; undefined if they cannot get it. */
  readonly sent?: SentTraining | undefined
  /** Runs after each update, with the number of updates so far, for envs that play against the trained policy. */
  readonly afterUpdate: ((updates: number) => Effect.Effect<void, BackendError>) | undefined
  readonly writeStepFolder: WriteStepFolder | undefined
  /** Writes `steps/{STEP}/` on a user's request, even if `render` is off. The first request compiles what it needs. */
  readonly writeWantedStep: WriteWantedStep | undefined
}

type WriteWantedStep = (
  state: TrainingState,
) => Effect.Effect<string, SetupError | LearnerError | RunStoreError, CurrentRun>

/**
 * Makes the envs, the learner and the validator of a plan. Fails before the run's folder is created if one of them
 * cannot be made. The scope closes the envs.
 */
export const setUp = Effect.fnUntraced(function* (
  plan: Plan,
): Effect.fn.Return<Training, SetupError | EnvError, Backend | Scope.Scope> {
  const { settings, env, algorithm } = plan
  yield* checkRollout(plan)
  const { actionSpace, maxSteps } = env
  const described = {
    observationSpace: settings.normalize.observations ? Normalise.spaceOf(rowSpaceOf(env)) : rowSpaceOf(env),
    actionSpace,
    agents: env.agents,
    maxSteps,
    graph: graphOf(env),
    goals: goalsOf(env),
    model: env,
  }
  const task = { ...settings, ...described }
  const learner = yield* learnerOf(algorithm, task).pipe(
    Effect.catchTag("ConfigError", (error) => Effect.fail(ConfigError.at(plan.from, error.key, error.problem))),
    withinMemory(plan),
  )
  const problem = misfit(plan, learner)
  if (problem !== undefined) return yield* problem
  // A learner that plays its envs in the graph needs no batch of envs. It gets a batch of one env, which never steps.
  const numEnvs = learner.episodes === undefined ? settings.numEnvs : 1
  const trainee = traineeOf(plan, learner)
  const envs = yield* trainingEnvs(env, { ...settings, numEnvs }, statisticsOf(plan, learner)).pipe(
    Effect.provideService(Trainee, trainee.service),
    withinMemory(plan),
  )
  const afterUpdate = trainee.afterUpdate()
  const { policy } = learner
  if (policy === undefined) {
    const none = { validator: undefined, writeStepFolder: undefined, writeWantedStep: undefined }
    return { plan, envs, learner, afterUpdate, ...none }
  }
  const own = yield* OwnValidator
  const makeValidation =
    own === undefined
      ? Effect.flatMap(validationBatches(plan.validationEnvs, settings, envs), (batches) =>
          makeValidator(batches, policy, settings.validation),
        )
      : makeOwnValidator(own, plan, envs, policy)
  const makeFolder = makeStepFolder({ plan, learner, envs }, policy)
  yield* checkVideos(env.id, settings.render)
  const validates = settings.validation.everySteps > 0
  yield* checkAgents(plan)
  if (validates && own === undefined) yield* checkWholeGames(plan)
  const validator = validates ? yield* makeValidation : undefined
  const { render } = settings
  const writesFolders =
    render.everySteps > 0 || render.everyEpisodes > 0 || (yield* CheckpointRequest).writesStepFolder === true
  const writeStepFolder = writesFolders ? yield* makeFolder : undefined
  // A user can request a folder of the current step (kill -USR1) although the config writes none. The first request makes
  // the validator and the writer that it needs; later requests use them again.
  const onDemand = yield* Effect.cached(
    Effect.all({
      validator: validator === undefined ? makeValidation : Effect.succeed(validator),
      writeStepFolder: writeStepFolder === undefined ? makeFolder : Effect.succeed(writeStepFolder),
    }).pipe(Effect.provideService(Scope.Scope, yield* Effect.scope), Effect.provideService(Backend, yield* Backend)),
  )
  const writeWantedStep: WriteWantedStep = Effect.fnUntraced(function* (state) {
    const parts = yield* onDemand
    const evaluation =
      state.evaluationHere ?? evaluationOf(state.step, yield* parts.validator.validate(settings.seed, state.step))
    return yield* parts.writeStepFolder(state, evaluation)
  })
  return { plan, envs, learner, afterUpdate, validator, writeStepFolder, writeWantedStep }
})

/**
 * Says by which discount factors rewards are normalised, and which agents of a game share statistics. Groups have the order of
 * the agents, so statistics in a checkpoint do not depend on the order of the policies in a config.
 */
const statisticsOf = ({ algorithm: { config }, env }: Plan, { separate }: Learner) => {
  const policies: ReadonlyArray<unknown> =
    separate !== undefined && Array.isArray(config.policies) ? config.policies : [config]
  const owners = separate && env.agents?.map((agent) => separate.findIndex(({ agents }) => agents.includes(agent)))
  const ordered = [...new Set(owners ?? [0])]
  return {
    // The normalisation of rewards needs a discount factor, even if the algorithm has none (es).
    gamma: ordered.map((at) => {
      const one = policies[at]
      return isPlain(one) && typeof one.gamma === "number" ? one.gamma : 0.99
    }),
    groups: owners?.map((at) => ordered.indexOf(at)),
  }
}

/**
 * Returns the service by which envs play against the trained policy, and a function that returns the Effect to run
 * after each update, if those envs need one.
 */
const traineeOf = ({ settings, env, algorithm }: Plan, { policy, episodes }: Learner) => {
  const hooks: Array<(updates: number) => Effect.Effect<void, BackendError>> = []
  const refuse = (problem: string) => invalid(env.id, `past selves: ${problem}`)
  const service: TraineeService = {
    seed: settings.seed,
    policy: Effect.fnUntraced(function* (rows) {
      if (settings.normalize.observations) {
        return yield* refuse("they see observations as the game gives them; set normalize.observations to false")
      }
      if (policy === undefined || episodes !== undefined)
        return yield* refuse(`${algorithm.name} has no policy for them`)
      const { program, refresh, weights } = yield* Effect.mapError(
        policy(rows, { sampled: true, externalMemory: true }),
        ({ message }) => refuse(message),
      )
      if (weights === undefined) return yield* refuse(`the policy of ${algorithm.name} does not give its weights`)
      return { program, refresh, ...weights }
    }),
    afterUpdate: (hook) => hooks.push(hook),
  }
  const afterUpdate = () =>
    hooks.length === 0
      ? undefined
      : (updates: number) => Effect.forEach(hooks, (hook) => hook(updates), { discard: true })
  return { service, afterUpdate }
}

/** The largest count of numbers in the observations of one rollout; as 32-bit floats they take two gibibytes. */
const mostNumbers = 2 ** 29

/**
 * Fails if the observations of one rollout have more than `mostNumbers` numbers: the operating system would kill the
 * process instead of reporting an error.
 */
const checkRollout = ({ settings, env, algorithm, from }: Plan): Effect.Effect<void, ConfigError> => {
  const { nsteps } = algorithm.config
  const size = sizeOf(rowSpaceOf(env))
  if (typeof nsteps !== "number" || settings.numEnvs * nsteps * size <= mostNumbers) return Effect.void
  const problem = `${nsteps} steps of ${settings.numEnvs} envs, each with ${size} numbers to observe, are more than ${mostNumbers} numbers; make nsteps or num_envs smaller`
  return Effect.fail(ConfigError.at(from, "algorithm.nsteps", problem))
}

/** Fails if the episodes of a validation do not fill whole games, in which each agent has an episode. */
const checkWholeGames = ({ settings, validationEnvs, from }: Plan): Effect.Effect<void, ConfigError> => {
  const { episodes } = settings.validation
  const counts = shares(episodes, validationEnvs.length).map(({ count }) => count)
  const parted = validationEnvs.find(({ agents = [""] }, at) => counts[at] % agents.length !== 0)
  if (parted?.agents === undefined) return Effect.void
  const { length } = parted.agents
  const each = validationEnvs.length === 1 ? "" : ` for each of the ${validationEnvs.length} envs`
  const problem = `expected a multiple of ${length}${each}, because each of the ${length} agents of ${parted.id} has an episode in each game; found ${episodes}`
  return Effect.fail(ConfigError.at(from, "validation.episodes", problem))
}

/** Fails if `validation.agents` names an agent that a validation env does not have. */
const checkAgents = ({ settings, validationEnvs, from }: Plan): Effect.Effect<void, ConfigError> => {
  for (const { id, agents } of validationEnvs) {
    const other = settings.validation.agents.find((name) => agents?.includes(name) !== true)
    if (other === undefined) continue
    const expected =
      agents === undefined ? `none with ${id}, which has one agent` : `agents of ${id}, which are ${agents.join(", ")}`
    return Effect.fail(ConfigError.at(from, "validation.agents", `expected ${expected}; found ${other}`))
  }
  return Effect.void
}

/** Wraps an Effect: if it cannot allocate a large array, it fails with an error that names the settings to decrease. */
const withinMemory =
  ({ settings, algorithm, from }: Plan) =>
  <A, E, R>(setup: Effect.Effect<A, E, R>): Effect.Effect<A, E | ConfigError | GraphError, R> =>
    Effect.catchDefect(setup, (defect): Effect.Effect<never, ConfigError | GraphError> => {
      if (defect instanceof GraphError) return Effect.fail(defect)
      if (!(defect instanceof RangeError)) return Effect.die(defect)
      const sizes = ["nsteps", "bufferSize", "batchSize", "hidden"].flatMap((key) =>
        algorithm.config[key] === undefined ? [] : [`algorithm.${snakeCase(key)} ${display(algorithm.config[key])}`],
      )
      const message = `more memory needed than there is (${oneLine(defect.message)}); make some of these smaller: ${[`num_envs ${settings.numEnvs}`, ...sizes].join(", ")}`
      return Effect.fail(ConfigError.at({ source: from.source }, "", message))
    })
