/**
 * Makes the samples that a run is trained on: for each step it draws tasks, lets the run's agent play them with the
 * weights of the run, compares the rewards, and hands the samples to the trainer in `rollouts/step_N`. Validations go to
 * `validations/step_N.json`.
 *
 * With `max_async_level: 0`, it waits for the weights of every step, so the same seed gives the same samples. With
 * `max_async_level: N`, it continues to play while the trainer works, with weights that are at most N steps old.
 */
import { Clock, Effect, type FileSystem, type Path, type Scope } from "effect"
import { TrainerError } from "../TrainerError.ts"
import * as SelfPlay from "../../agents/episode/protocols/SelfPlay.ts"
import * as SingleAgent from "../../agents/episode/protocols/SingleAgent.ts"
import type { Protocol } from "../../agents/episode/Protocol.ts"
import * as RolloutEngine from "../../agents/episode/rollouts/RolloutEngine.ts"
import * as RolloutRequest from "../../agents/episode/rollouts/RolloutRequest.ts"
import { type Rollout, scoreOf } from "../../agents/episode/Rollout.ts"
import type { LmService } from "../../agents/lm/Lm.ts"
import type { LmError } from "../../agents/lm/LmError.ts"
import { seeded } from "../../agents/lm/middleware/seeded.ts"
import { stream } from "../../base/rng/Rng.ts"
import type { TaskSet } from "../../agents/task/TaskSet.ts"
import type { TrainingSample } from "../batches/TrainingSample.ts"
import { rolloutsState, writeRollouts } from "../batches/rolloutFiles.ts"
import { openRunFolder, type RunFolder, type RunFolderError } from "../runs/guardedFolder.ts"
import { comparesRewards } from "../config/learningProblems.ts"
import { episodesBefore, objectiveAt, type OrchestratorConfig } from "../config/OrchestratorConfig.ts"
import { type FailedEpisode, type Failures, hasValidation, writeValidation } from "../records/reports.ts"
import { failuresOf, transcriptsOfStep, transcriptsOfValidation } from "../records/transcripts.ts"
import type { Pairs } from "../preferences/pairs.ts"
import { pairSamples } from "../preferences/pairSamples.ts"
import type { Teacher } from "../teacher/teachers.ts"
import { type RenderHint, taughtSamples, withHints } from "../teacher/taughtSamples.ts"
import type { OwnWeights } from "../trainer/TrainedModel.ts"
import { type Critic, openCritic } from "../critic/openCritic.ts"
import type { FeatureReader } from "../teacher/compileScorer.ts"
import { isPlayed, samplesOf, type Scored, type Usable, usableOf } from "./advantages.ts"
import { type AgentOf, demonstrations, type Encode } from "./demonstrations.ts"
import { failedRollout, failureOf, isTooMany, refuseFailures, rewardProblem, tooMany } from "./failedEpisodes.ts"
import { figuresOf } from "./figures.ts"
import { chosenGroups, nextTasks, type StepState } from "./groups.ts"
import { filterMetrics } from "./sampleFilters.ts"
import { taskOrder } from "./taskOrder.ts"

export interface Orchestration {
  readonly run: { readonly id: string; readonly directory: string; readonly config: OrchestratorConfig }
  readonly tasks: TaskSet
  readonly validation: TaskSet | null
  /** The pairs of a run with the objective `dpo`. */
  readonly pairs?: Pairs | null
  readonly agentOf: AgentOf
  /** The run's model. It samples at the run's temperature, and answers validations greedily. */
  readonly policy: LmService
  readonly encode: Encode
  /** The largest number of tokens of a sample. */
  readonly width: number
  /** Whether samples need the experts that the model chose, because they are replayed. By default they do not. */
  readonly routerReplay?: boolean
  /** Waits until the run's weights of this step, or of a later one, answer requests. */
  readonly awaitWeights: (step: number) => Effect.Effect<void, { readonly message: string }>
  /** Runs before the model plays the tasks of a step, or of a validation. */
  readonly beforePlaying?: Effect.Effect<void>
  /** Opens the run's teacher; null if the run has none. */
  readonly teacher?: Effect.Effect<Teacher, { readonly message: string }, Scope.Scope> | null
  /** Opens the program that computes features for the run's critic; null if the run has none. */
  readonly features?: Effect.Effect<FeatureReader, { readonly message: string }, Scope.Scope> | null
  /** Renders a hint for the run's own model as its teacher. */
  readonly renderHint?: RenderHint
  /** Returns the newest weights of the run, for its own model as its teacher, and for its critic. */
  readonly ownWeights?: () => OwnWeights | undefined
  /** Reports that the samples of a step are written, so that a trainer in this process reads them at once. */
  readonly handedOver?: Effect.Effect<void>
}

/** The errors that end an orchestrator. The trainer then evicts the run. */
type OrchestratorError = LmError | RunFolderError | { readonly message: string }

type Needs = FileSystem.FileSystem | Path.Path

/**
 * The number of supervised steps whose samples are made in advance. They do not depend on the weights, so all could be made
 * at once, but they would fill the disk.
 */
const supervisedAhead = 4

/** Makes the samples of all steps from `firstStep` to `max_steps`. Steps whose samples exist already are skipped. */
export const orchestrate = Effect.fn("effect-rl.orchestrator")(function* (
  orchestration: Orchestration,
  firstStep: number,
): Effect.fn.Return<void, OrchestratorError, Needs | Scope.Scope> {
  const { run, awaitWeights, validation } = orchestration
  const { maxSteps, maxAsyncLevel, validation: validating } = run.config
  const folder = yield* openRunFolder(run)
  const drawn = drawerOf(orchestration)
  const teacher = yield* orchestration.teacher ?? Effect.undefined
  const critic = yield* openCritic(orchestration, folder)
  for (let step = firstStep; maxSteps === null || step < maxSteps; step++) {
    const isDue = validation !== null && validating.every > 0 && step % validating.every === 0
    if (isDue) yield* validate(orchestration, folder, validation, step)
    if ((yield* rolloutsState(folder, step)) === "ready") continue
    const { type } = objectiveAt(run.config, step)
    const isWritten = type === "sft" || type === "dpo"
    const ahead = isWritten ? Math.max(maxAsyncLevel, supervisedAhead) : maxAsyncLevel
    yield* awaitWeights(Math.max(0, step - ahead))
    const made = yield* type === "dpo"
      ? pairsOfStep(orchestration, drawn(step), step)
      : playedStep(orchestration, drawn, step, teacher, critic)
    yield* writeRollouts(folder, { step, ...made })
    if (orchestration.handedOver !== undefined) yield* orchestration.handedOver
  }
  if (validation !== null && maxSteps !== null && validating.every > 0)
    yield* validate(orchestration, folder, validation, maxSteps)
}, Effect.scoped)

const noMetrics: Readonly<Record<string, number>> = {}

/** Plays the tasks of a step, and scores the samples. */
const playedStep = Effect.fnUntraced(function* (
  orchestration: Orchestration,
  drawn: Drawn,
  step: number,
  teacher: Teacher | undefined,
  critic: Critic | undefined,
) {
  const { config } = orchestration.run
  const objective = objectiveAt(config, step)
  const isSupervised = objective.type === "sft"
  const made = yield* makeStep(orchestration, drawn, step)
  const { usable, failures } = made
  const { evenGroups, positiveOnly } = config.batch
  const scored = samplesOf(usable, { objective, evenGroups, positiveOnly })
  const { rollouts } = scored
  const recorded = comparesRewards(config) ? scored : { ...scored, advantages: undefined }
  const { samples: learned, metrics: taught } = yield* taughtStep(orchestration, teacher, usable, scored.samples, step)
  const valued = yield* critic === undefined || isSupervised
    ? Effect.succeed({ samples: learned, metrics: noMetrics })
    : critic.valued(learned, usable, step)
  const { samples } = valued
  const { failed } = failures
  const figures = metricsOf(orchestration, step, made, scored)
  const metrics = { "sampling/samples": samples.length, ...figures, ...taught, ...valued.metrics }
  const { transcripts: settings } = config
  const hasTranscripts = !isSupervised && settings.every > 0 && step % settings.every === 0
  const seenEpisodes = episodesBefore(config, step)
  const about = { step, seenEpisodes, groups: settings.groups }
  const nowMillis = yield* Clock.currentTimeMillis
  const transcripts = [
    ...(hasTranscripts ? transcriptsOfStep(recorded, { ...about, nowMillis }) : []),
    ...failuresOf(failed, { mode: "train", seenEpisodes, played: rollouts.length }),
  ]
  const saved = "critic" in valued ? { critic: valued.critic } : {}
  return { samples, report: { metrics, transcripts, ...(failed.length === 0 ? {} : { failures }) }, ...saved }
})

/** Gives the samples of a step the advantages of the run's teacher, if it has one. Also puts hints before supervised samples. */
const taughtStep = Effect.fnUntraced(function* (
  { run: { id, config }, tasks, width, renderHint, ownWeights = () => undefined }: Orchestration,
  teacher: Teacher | undefined,
  usable: ReadonlyArray<Usable>,
  samples: ReadonlyArray<TrainingSample>,
  step: number,
) {
  const { teacher: settings, supervised } = config
  const untaught = { samples, metrics: noMetrics }
  if (teacher === undefined || settings === null) return untaught
  const { hint, supervisedHints } = settings
  const hinting = (own: ReadonlyArray<TrainingSample>) =>
    hint === null || renderHint === undefined
      ? Effect.succeed(own)
      : withHints(own, usable, { tasks, run: id, step, width, hint, renderHint })
  if (step < supervised.steps) return { samples: yield* partly(samples, supervisedHints, hinting), metrics: noMetrics }
  const hinted = yield* hinting(samples)
  return yield* taughtSamples(samples, { teacher, config: settings, run: id, step, hinted, own: ownWeights() })
})

/** Changes a share of samples, spread evenly. */
const partly = <E>(
  samples: ReadonlyArray<TrainingSample>,
  share: number,
  change: (some: ReadonlyArray<TrainingSample>) => Effect.Effect<ReadonlyArray<TrainingSample>, E>,
) =>
  Effect.forEach(samples, (sample, at) =>
    Math.floor((at + 1) * share) > Math.floor(at * share)
      ? Effect.map(change([sample]), ([changed]) => changed)
      : Effect.succeed(sample),
  )

/** Makes the samples of a step from pairs. */
const pairsOfStep = Effect.fnUntraced(function* (
  { run, pairs = null, encode, width }: Orchestration,
  indices: ReadonlyArray<number>,
  step: number,
) {
  if (pairs === null) return yield* TrainerError.at(run.id, "pairs: expected pairs of answers, found none")
  const samples = yield* pairSamples({ pairs, indices, encode, run: run.id, step, width })
  return { samples, report: { metrics: { "sampling/samples": samples.length }, transcripts: [] } }
})

/**
 * Returns the function that draws the tasks of a step, or its pairs. The draws depend only on the step, so a resumed run draws the same
 * tasks.
 */
const drawerOf = ({ tasks, pairs = null, run }: Orchestration) => {
  const { seed, batch, supervised } = run.config
  const taskOf = taskOrder({ seed, size: tasks.size })
  const pairOf = pairs === null ? undefined : taskOrder({ seed, size: pairs.size })
  const perStep = batch.size / batch.groupSize
  return (step: number): ReadonlyArray<number> => {
    const supervisedSteps = Math.min(step, supervised.steps)
    if (pairOf !== undefined && step >= supervised.steps)
      return Array.from({ length: batch.size }, (_, at) => pairOf((step - supervised.steps) * batch.size + at))
    const before = supervisedSteps * batch.size + (step - supervisedSteps) * perStep
    const count = step < supervised.steps ? batch.size : perStep
    return Array.from({ length: count }, (_, at) => taskOf(before + at))
  }
}

type Drawn = ReturnType<typeof drawerOf>

const requestOf = ({ run: { config } }: Orchestration, step: number, task: number, at: number) => {
  const random = stream(config.seed, "rollout", step, at)
  return {
    id: `step-${step}-${at}`,
    task,
    envSeed: random.uint32(),
    samplingSeed: random.uint32(),
    groupId: `step-${step}-${at}`,
    tags: {},
  }
}

/** The episodes of a step. */
interface MadeStep {
  /** The episodes of the groups that are trained on. */
  readonly usable: ReadonlyArray<Usable>
  /** The episodes of all groups, also of groups that are left out because others were played in their place. */
  readonly played: ReadonlyArray<Usable>
  /** The number of groups that are left out. */
  readonly leftOut: number
  readonly failures: Failures
}

/**
 * Plays the tasks of a step, or imitates their answers. A failed episode only loses its sample. If all episodes fail, other
 * tasks are played instead. Fails if more episodes fail than the run's config allows.
 */
const makeStep = Effect.fnUntraced(function* (orchestration: Orchestration, drawn: Drawn, step: number) {
  const { run, tasks, width, routerReplay = false, beforePlaying = Effect.void } = orchestration
  const { maxFailures, sampling, supervised, batch } = run.config
  const isSupervised = step < supervised.steps
  const protocol = yield* protocolOf(orchestration, isSupervised)
  const temperature = isSupervised ? 1 : sampling.temperature
  const filters = isSupervised ? [] : batch.filters
  const objective = objectiveAt(run.config, step)
  const needsExperts = routerReplay && !isSupervised
  const converting = { run: run.id, step, objective, width, temperature, filters, needsExperts }
  let next = drawn(step)
  const state: StepState = {
    step,
    wanted: next.length,
    usable: [],
    failed: [],
    tasks: new Set(),
    episodes: 0,
    groups: 0,
    rounds: 0,
  }
  for (;;) {
    const single = next.map((task, at) => requestOf(orchestration, step, task, state.groups + at))
    const requests = isSupervised ? single : single.flatMap((one) => RolloutRequest.repeat(one, batch.groupSize))
    for (const task of next) state.tasks.add(task)
    state.groups += next.length
    state.episodes += requests.length
    state.rounds++
    if (!isSupervised) yield* beforePlaying
    const { rollouts, taskOf, ...others } = yield* playAll(orchestration, requests, protocol)
    const { usable, unusable } = yield* usableOf(rollouts.filter(isPlayed), converting)
    for (const one of usable) state.usable.push({ ...one, task: taskOf(one.rollout) })
    for (const one of others.failed) state.failed.push(one)
    for (const { rollout, error } of unusable) {
      // An episode has no samples, or the trainer can't use those that it has.
      const tag = error instanceof TrainerError ? "InvalidSample" : error._tag
      state.failed.push(failedRollout(rollout, taskOf(rollout), tag, error.message))
    }
    next = nextTasks(run.config, tasks.size, state)
    const isOver = next.length === 0
    const failures = { failed: state.failed, played: state.episodes }
    yield* refuseFailures(`step ${step}`, failures, { maxFailures, isOver, hasSamples: state.usable.length > 0 })
    if (!isOver) continue
    const played = state.usable
    const chosen = isSupervised ? { usable: played, leftOut: 0 } : chosenGroups(played, state.wanted)
    return { ...chosen, played, failures } satisfies MadeStep
  }
})

/** Makes the protocol that plays the episodes of a step: by the model, or by demonstrations in a supervised step. */
const protocolOf = Effect.fnUntraced(function* (
  { run, policy, agentOf, encode }: Orchestration,
  isSupervised: boolean,
) {
  if (isSupervised) return demonstrations(agentOf, encode)
  const agent = yield* agentOf(seeded(policy))
  const { make } = run.config.protocol === "self_play" ? SelfPlay : SingleAgent
  return make(agent, { endsIfPromptTooLong: true })
})

/** Plays all requests concurrently. Returns the rollouts in the order of the requests, and the episodes that failed. */
const playAll = Effect.fnUntraced(function* (
  { tasks }: Pick<Orchestration, "tasks">,
  requests: ReadonlyArray<RolloutRequest.RolloutRequest>,
  protocol: Protocol,
) {
  const rollouts: Array<Rollout> = []
  const failed: Array<FailedEpisode> = []
  const tasksOf = new Map<string, number>()
  yield* RolloutEngine.each(
    { requests, tasks, protocol, concurrency: requests.length },
    Effect.fnUntraced(function* (outcome) {
      const failure = yield* failureOf(outcome, tasks)
      if (failure !== undefined) failed.push(failure)
      for (const rollout of outcome.rollouts) {
        tasksOf.set(rollout.id, outcome.request.task)
        const problem = rewardProblem(rollout)
        if (problem === undefined) rollouts.push(rollout)
        else failed.push(failedRollout(rollout, outcome.request.task, "RewardError", problem))
      }
    }),
  )
  return { rollouts, failed, taskOf: ({ id }: Pick<Rollout, "id">): number => tasksOf.get(id) ?? 0 }
})

/**
 * Plays all validation tasks once, greedily, with the weights with which the step begins. Skipped if an earlier process has
 * done it. The scores come from the env alone, so an answer that was cut off counts as wrong, whatever penalty the training
 * gives it.
 */
const validate = Effect.fnUntraced(function* (
  orchestration: Orchestration,
  folder: RunFolder,
  tasks: TaskSet,
  step: number,
) {
  if (yield* hasValidation(folder, step)) return
  const { run, policy, agentOf, awaitWeights, beforePlaying = Effect.void } = orchestration
  const { seed, maxFailures } = run.config
  yield* awaitWeights(step)
  yield* beforePlaying
  const greedy: LmService = { complete: (request) => policy.complete({ ...request, temperature: 0 }) }
  const agent = yield* agentOf(greedy)
  const requests = [...RolloutRequest.forTasks(tasks, { seed, name: "validation" })]
  const protocol = SingleAgent.make(agent, { endsIfPromptTooLong: true })
  const { rollouts, failed } = yield* playAll({ tasks }, requests, protocol)
  const failures = { failed, played: requests.length }
  if (isTooMany(failures, maxFailures) || (rollouts.length === 0 && failed.length > 0))
    return yield* Effect.fail({ message: tooMany(`validation at step ${step}`, failures, maxFailures) })
  const transcripts = [
    ...transcriptsOfValidation(rollouts, { step, nowMillis: yield* Clock.currentTimeMillis }),
    ...failuresOf(failed, { mode: "validation", seenEpisodes: step, played: rollouts.length }),
  ]
  const scores = rollouts.map(scoreOf)
  yield* writeValidation(folder, { step, scores, transcripts, ...(failed.length === 0 ? {} : { failures }) })
})

/**
 * Computes the metrics of a step's episodes, without those of supervised steps. The rewards are those of all groups that were
 * played, also of groups that are not trained on.
 */
const metricsOf = (
  { run: { config } }: Orchestration,
  step: number,
  { played, leftOut, failures: { failed } }: MadeStep,
  { evenGroups, groups }: Pick<Scored, "evenGroups" | "groups">,
): Readonly<Record<string, number>> => {
  const lost: Readonly<Record<string, number>> = failed.length === 0 ? {} : { "sampling/failed": failed.length }
  if (step < config.supervised.steps) return lost
  const { filters, replacedGroups } = config.batch
  return {
    ...figuresOf(
      played.map(({ rollout }) => rollout),
      step,
    ),
    ...(comparesRewards(config) ? { "sampling/even_groups": evenGroups / groups } : {}),
    ...(replacedGroups === 0 ? {} : { "sampling/replaced_groups": leftOut }),
    ...filterMetrics(
      filters,
      played.flatMap(({ refused }) => refused),
    ),
    ...lost,
  }
}
