/** Runs the loop of a training: rollouts, updates, validations, checkpoints and renderings. `Train.ts` calls it. */
import { Effect } from "effect"
import type { WorkerError } from "../../spread/workers/WorkerError.ts"
import { oneLine } from "../../base/text/text.ts"
import { capabilitiesOf, crossed, type LearnerError } from "../learner/Learner.ts"
import { Averages } from "../learner/Averages.ts"
import { CurrentRun } from "../../run/CurrentRun.ts"
import type { ValidationOutcome } from "../../run/evaluation.ts"
import type { RunEvent } from "../../run/record/RunEvent.ts"
import * as Layout from "../../run/Layout.ts"
import type { RunError } from "../../run/Run.ts"
import { type Callbacks, startCallbacks } from "./callbacks.ts"
import { saveCheckpoint } from "./checkpointing.ts"
import type { Decided } from "./plan.ts"
import { RunOptions } from "../../run/RunOptions.ts"
import type { ReturnLimit } from "./Settings.ts"
import type { Env } from "../env/Env.ts"
import type { Training } from "./setUp.ts"
import type { TrainingState } from "./TrainingState.ts"
import { validateAnywhere } from "./validation/spread.ts"

export type LoopError = LearnerError | WorkerError | RunError

/**
 * Trains until the end: repeats iterations (collect a rollout, update the learner, record), and between them validates,
 * renders and saves when due. An iteration cannot be interrupted, so wherever the loop stops, the state is that after a
 * whole iteration, and a run that resumes from its checkpoint continues bit for bit. Callbacks run in the same
 * uninterruptible step as the work that they follow.
 */
export const trainLoop = Effect.fnUntraced(function* (
  training: Training,
  state: TrainingState,
): Effect.fn.Return<void, LoopError, CurrentRun> {
  const { settings } = training.plan
  const { isStepWanted = Effect.succeed(false) } = yield* RunOptions
  const callbacks = startCallbacks(training.plan, state)
  const checkpoint = Effect.uninterruptible(save(training, state, callbacks))
  if (settings.checkpoint.onStart && state.step === 0) yield* checkpoint

  while (true) {
    if (owesValidation(settings, state)) yield* validate(training, state, callbacks)
    if (owesRendering(settings, state)) yield* render(training, state)
    if (yield* isStepWanted) yield* showNow(training, state)

    const stopping = isStopping(settings, state)
    if (stopping || owesCheckpoint(settings, state)) yield* checkpoint
    if (stopping) return yield* tellDivergences(state)

    yield* Effect.uninterruptible(iterate(training, state, callbacks))
    yield* Effect.yieldNow
  }
})

/** Tells whether the training has done all its steps, or ends early. */
const isStopping = (settings: Decided, state: TrainingState): boolean =>
  state.step >= settings.totalSteps || earlyEndOf(settings, state) !== null

/**
 * Says why the training ends before its last step: a callback ended it, or the validation at this step missed a limit
 * of `stopBelow` or reached `stopAtReturn`. Null if the training does not end early.
 */
export const earlyEndOf = (settings: Decided, state: TrainingState): string | null => {
  const { stopAtReturn, totalSteps } = settings
  const { scoreHere, step, stopped } = state
  if (step >= totalSteps) return null
  if (stopped !== null) return `the callback ${stopped.by} ended it: ${oneLine(stopped.reason)}`
  const missed = missedLimit(settings, state)
  if (missed !== undefined) return belowLimit(state, missed)
  return stopAtReturn !== null && scoreHere !== null && scoreHere >= stopAtReturn
    ? `the validation's mean return ${scoreHere} reaches ${stopAtReturn}, which stop_at_return sets`
    : null
}

const belowLimit = ({ scoreHere }: TrainingState, limit: ReturnLimit): string =>
  `the validation's mean return ${scoreHere} is below ${limit.return}, the limit of stop_below at step ${limit.step}`

/** Returns the limit of `stopBelow` that the validation at exactly this step misses; undefined if there is none. */
const missedLimit = ({ stopBelow }: Decided, state: TrainingState): ReturnLimit | undefined => {
  const { scoreHere, step } = state
  if (scoreHere === null) return undefined
  const before = state.evaluations.at(-2)?.step ?? 0
  return stopBelow.find((limit) => before < limit.step && limit.step <= step && scoreHere < limit.return)
}

/** Tells whether no iteration follows: the training has done all its steps, or a callback has ended it. */
const isLast = ({ totalSteps }: Decided, { step, stopped }: TrainingState): boolean =>
  step >= totalSteps || stopped !== null

/** Tells whether a validation is due: after every `everySteps` steps, and at the end of a training that validates. */
const owesValidation = (settings: Decided, state: TrainingState): boolean => {
  const { everySteps } = settings.validation
  const owesLast = isLast(settings, state) && everySteps > 0 && state.lastValidationStep < state.step
  return owesLast || crossed(state.lastValidationStep, state.step, everySteps)
}

const owesRendering = (settings: Decided, state: TrainingState): boolean =>
  crossed(state.lastRenderStep, state.step, settings.render.everySteps) ||
  crossed(state.lastRenderEpisode ?? 0, state.episodes, settings.render.everyEpisodes)

/** Tells whether a training has nothing left to do. */
export const isOver = (settings: Decided, state: TrainingState): boolean =>
  isStopping(settings, state) && !owesValidation(settings, state) && !owesRendering(settings, state)

/**
 * Runs iterations until a validation, a checkpoint, the end of the training or a record of the progress is due. Then
 * gives the recorder this record and the episodes that ended.
 */
const iterate = Effect.fnUntraced(function* (training: Training, state: TrainingState, callbacks: Callbacks) {
  const { learner, envs, plan, afterUpdate: envsAfterUpdate } = training
  const { settings } = plan
  const { rollout, update, target } = learner
  const firstStep = state.step
  const events: Array<RunEvent> = []
  const { steer, watchesRollouts, watchesUpdates, afterRollout, afterUpdate } = callbacks
  /** The metrics of the updates so far, if callbacks see those of each update. */
  const averages = new Averages()
  const agentReturns = new Averages()
  const { recording, secondsOfWork, isSaving, letSave } = yield* CurrentRun
  do {
    if (isSaving()) yield* letSave
    const position = { iteration: state.iteration, step: state.step, steer }
    const steps = yield* rollout(envs, position)
    endedEpisodes(training, state, events, agentReturns)
    if (watchesRollouts) yield* afterRollout(steps)
    yield* update(position)
    state.step += steps
    state.iteration++
    if (envsAfterUpdate !== undefined) yield* envsAfterUpdate(state.iteration)
    if (target !== undefined && crossed(position.step, state.step, target.everySteps)) yield* target.update
    if (!watchesUpdates) continue
    const metrics = learner.metrics()
    averages.addAll(metrics)
    callbacks.see(metrics)
    yield* afterUpdate
  } while (state.step - firstStep < settings.recordEvery && !isDue(settings, state))
  const seconds = yield* secondsOfWork
  const metrics = watchesUpdates ? averages.take() : learner.metrics()
  callbacks.see(metrics)
  events.push(...callbacks.takeEvents(), {
    _tag: "UpdateApplied",
    step: state.step,
    update: state.iteration,
    metrics: { ...metrics, ...charts(state, seconds), ...agentReturns.take() },
  })
  yield* recording.emit(events)
})

const isDue = (settings: Decided, state: TrainingState): boolean =>
  isLast(settings, state) ||
  crossed(state.lastValidationStep, state.step, settings.validation.everySteps) ||
  crossed(state.lastRenderEpisode ?? 0, state.episodes, settings.render.everyEpisodes) ||
  owesCheckpoint(settings, state)

const owesCheckpoint = (settings: Decided, state: TrainingState): boolean =>
  // To keep the best checkpoints, one must be saved at every validation.
  (settings.checkpoint.strategy._tag === "TopKValidation" &&
    state.scoreHere !== null &&
    state.lastCheckpointStep < state.step) ||
  crossed(state.lastCheckpointStep, state.step, settings.checkpoint.everySteps) ||
  crossed(state.lastCheckpointEpisode, state.episodes, settings.checkpoint.everyEpisodes)

/** Saves a checkpoint. If callbacks follow it, waits until it is written, and runs them. */
const save = Effect.fnUntraced(function* (training: Training, state: TrainingState, callbacks: Callbacks) {
  yield* saveCheckpoint(training, state)
  if (!callbacks.watchesCheckpoints) return
  yield* (yield* CurrentRun).saved
  const { dir } = training.plan.settings.checkpoint
  yield* callbacks.afterCheckpoint(`${dir}/${Layout.checkpointName("step", state.step)}`)
})

/** Writes the folder `steps/{STEP}/` of this step. If that fails, a warning says so and the training continues. */
const render = Effect.fn("effect-rl.render")(function* ({ writeStepFolder, plan }: Training, state: TrainingState) {
  if (writeStepFolder === undefined) return
  const event = yield* writeStepFolder(state).pipe(
    Effect.map((path) => ({ _tag: "Note" as const, message: `step ${state.step} rendered: ${path}` })),
    Effect.catchTag(["EnvError", "LearningError", "BackendError"], (error) =>
      Effect.succeed({ _tag: "Warning" as const, message: `rendering at step ${state.step} failed: ${error.message}` }),
    ),
  )
  // Set this last: if we are interrupted here, the resumed run renders this step again.
  state.lastRenderStep = state.step
  if (plan.settings.render.everyEpisodes > 0) state.lastRenderEpisode = state.episodes
  yield* (yield* CurrentRun).recording.emit([event])
})

/** Writes the folder `steps/{STEP}/` of this step at a user's request. The training and its scores do not change. */
const showNow = Effect.fn("effect-rl.showNow")(function* ({ writeWantedStep }: Training, state: TrainingState) {
  const failed = (problem: string) => ({
    _tag: "Warning" as const,
    message: `step ${state.step} was requested, but cannot be rendered: ${problem}`,
  })
  const event =
    writeWantedStep === undefined
      ? failed("the algorithm has no policy to play")
      : yield* writeWantedStep(state).pipe(
          Effect.map((path) => ({ _tag: "Note" as const, message: `step ${state.step} rendered on request: ${path}` })),
          Effect.catch((error) => Effect.succeed(failed(error.message))),
        )
  yield* (yield* CurrentRun).recording.emit([event])
})

/** Returns metrics: the steps per second and, once episodes have ended, means over the last hundred of them. */
const charts = (state: TrainingState, seconds: number): Record<string, number> => {
  const { meanReturn, meanLength, stepsBefore } = state
  const speed: Record<string, number> = seconds > 0 ? { "charts/SPS": (state.step - stepsBefore) / seconds } : {}
  return meanReturn === null || meanLength === null
    ? speed
    : { ...speed, "charts/episodic_return": meanReturn, "charts/episodic_length": meanLength }
}

/**
 * Counts the episodes that ended in the last rollout, and appends an event for each to `events`. For a learner that
 * plays one episode in each env, only the first episode of each env counts. In a game, the returns are also averaged for each
 * agent.
 */
const endedEpisodes = (
  { envs, plan, learner }: Training,
  state: TrainingState,
  events: Array<RunEvent>,
  agentReturns: Averages,
): void => {
  const { episodes = envs.episodes } = learner
  const { env, settings } = plan
  const { numEnvs } = settings
  const played = capabilitiesOf(learner).plays === "one episode each" ? new Uint8Array(numEnvs) : undefined
  for (let at = 0; at < episodes.length; at++) {
    if (played !== undefined && played[episodes.envs[at]]++ > 0) continue
    const total = episodes.returns[at]
    const length = episodes.lengths[at]
    const truncated = episodes.truncated[at] === 1
    const diverged = episodes.diverged[at] === 1
    if (diverged) countDivergence(state, events)
    const agent = env.agents?.[episodes.envs[at] % env.agents.length]
    if (agent !== undefined) agentReturns.add(`charts/episodic_return/${agent}`, total)
    events.push({
      _tag: "EpisodeEnded",
      // The batch counts the steps of each env; the run counts those of all envs.
      step: episodes.steps[at] * numEnvs,
      episode: state.addEpisode(total, length),
      env: episodes.envs[at],
      return: total,
      length,
      terminated: episodes.terminated[at] === 1,
      truncated,
      truncationReason: truncated ? truncationReasonOf(diverged, length, env) : null,
    })
  }
  episodes.clear()
  state.trim()
}

const truncationReasonOf = (diverged: boolean, length: number, { maxSteps = Infinity }: Pick<Env, "maxSteps">) => {
  if (diverged) return "diverged"
  return length >= maxSteps ? "max_steps" : "env"
}

/** Counts an episode whose simulation diverged; the first one is also a warning. */
const countDivergence = (state: TrainingState, events: Array<RunEvent>): void => {
  state.divergedEpisodes = (state.divergedEpisodes ?? 0) + 1
  if (state.divergedEpisodes > 1) return
  const message = `an episode was cut off because its simulation diverged, with the reward 0 in its last step; a smaller timestep or weaker motors help. The training goes on and counts such episodes`
  events.push({ _tag: "Warning", message })
}

/** Says at the end of a training how many of its episodes diverged. */
const tellDivergences = Effect.fnUntraced(function* ({ divergedEpisodes: count = 0, episodes }: TrainingState) {
  if (count === 0) return
  const message = `${count} ${count === 1 ? "episode" : "episodes"} diverged of ${episodes}: their simulations left all bounds, so their returns say little about the policy`
  yield* (yield* CurrentRun).recording.emit([{ _tag: "Warning", message }])
})

/**
 * Validates the policy, adds the outcome to the state, and passes it to the recorder. A failure of the policy or of an
 * env is counted and recorded as a warning; the training continues without a score.
 */
const validate = Effect.fn("effect-rl.validate")(function* (
  training: Training,
  state: TrainingState,
  callbacks: Callbacks,
) {
  const { recording } = yield* CurrentRun
  const outcome = yield* validateAnywhere(training, state.step).pipe(
    Effect.catchTag(["LearningError", "BackendError", "EnvError"], (error) => {
      state.failedValidations++
      state.lastValidationStep = state.step
      return recording
        .emit([{ _tag: "Warning", message: `validation at step ${state.step} failed: ${error.message}` }])
        .pipe(Effect.as(undefined))
    }),
  )
  if (outcome === undefined) return
  yield* Effect.uninterruptible(
    Effect.gen(function* () {
      state.addValidation(outcome)
      const { settings } = training.plan
      const missed = missedLimit(settings, state)
      yield* recording.emit([
        { _tag: "ValidationEnded", step: state.step, seenEpisodes: state.episodes, ...outcome },
        ...(state.evaluations.length === 1 && comparesScores(settings) && isZeroSum(outcome) ? [zeroSum] : []),
        ...(missed === undefined ? [] : [givesUp(state, missed)]),
      ])
      yield* callbacks.afterValidation(outcome)
      yield* recording.emit(callbacks.takeEvents())
    }),
  )
})

/** Tells whether something depends on the scores of validations: which checkpoints are kept, or when the training ends. */
const comparesScores = ({ checkpoint, stopAtReturn, stopBelow }: Decided): boolean =>
  checkpoint.strategy._tag === "TopKValidation" || stopAtReturn !== null || stopBelow.length > 0

/**
 * Tells whether in every game of a validation the returns of all agents add up to 0, and all of them count for the
 * score.
 */
const isZeroSum = ({ episodes }: ValidationOutcome): boolean => {
  let most = 0
  let sum = 0
  for (const [at, { env, agent, counts = true, return: won }] of episodes.entries()) {
    if (agent === undefined || !counts) return false
    most = Math.max(most, Math.abs(won))
    sum += won
    // The episodes of a game follow each other, and its first agent begins the next game.
    const next = episodes[at + 1]
    if (next?.env === env && next.agent !== episodes[0].agent) continue
    if (Math.abs(sum) > 1e-6 * most) return false
    sum = 0
  }
  return most > 0
}

const zeroSum: RunEvent = {
  _tag: "Warning",
  message:
    "the mean return of all agents is 0, as in every game of zero sum, so it says nothing: name the agents that count in validation.agents, or validate with MultiEnv.against in validation.envs",
}

const givesUp = (state: TrainingState, limit: ReturnLimit): RunEvent => ({
  _tag: "Note",
  message: `the training ends at step ${state.step}: ${belowLimit(state, limit)}`,
})
