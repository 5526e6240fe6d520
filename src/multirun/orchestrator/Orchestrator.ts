/**
 * Makes the samples that a run is trained on: for each step it draws tasks, lets the run's agent play them with the
 * weights of the run, compares the rewards, and hands the samples to the trainer in `rollouts/step_N`. Validations go to
 * `validations/step_N.json`.
 *
 * With `max_async_level: 0` it waits for the weights of every step, so the same seed gives the same samples. With a
 * higher level it plays on with weights that are at most that many steps old, while the trainer works.
 *
 * @example
 * ```ts
 * const orchestrator = orchestrate({ run, tasks, validation: null, agentOf, policy, encode, awaitWeights })
 * yield* Effect.forkScoped(orchestrator)
 * ```
 */
import { Clock, Effect, type FileSystem, type Path } from "effect"
import * as SelfPlay from "../../episode/protocols/SelfPlay.ts"
import * as SingleAgent from "../../episode/protocols/SingleAgent.ts"
import type { Protocol } from "../../episode/Protocol.ts"
import * as RolloutEngine from "../../episode/rollouts/RolloutEngine.ts"
import * as RolloutRequest from "../../episode/rollouts/RolloutRequest.ts"
import { type Rollout, scoreOf } from "../../episode/Rollout.ts"
import type { SampleError } from "../../episode/samples/Sample.ts"
import type { LmService } from "../../lm/Lm.ts"
import type { LmError } from "../../lm/LmError.ts"
import { seeded } from "../../lm/middleware/seeded.ts"
import { stream } from "../../rng/Rng.ts"
import type { RunStoreError } from "../../run/store/RunStoreError.ts"
import { meanOf } from "../../statistics/resampling.ts"
import type { TaskSet } from "../../task/TaskSet.ts"
import { type RolloutsError, rolloutsState, writeRollouts } from "../batches/rolloutFiles.ts"
import type { InvalidSample } from "../batches/TrainingSample.ts"
import { openRunFolder, type RunFolder, type RunFolderError } from "../runs/guardedFolder.ts"
import { episodesBefore, objectiveAt, type OrchestratorConfig } from "../config/OrchestratorConfig.ts"
import { hasValidation, writeValidation } from "../records/reports.ts"
import { transcriptsOfStep, transcriptsOfValidation } from "../records/transcripts.ts"
import { isPlayed, samplesOf } from "./advantages.ts"
import { type AgentOf, demonstrations, type Encode } from "./demonstrations.ts"
import { taskOrder } from "./taskOrder.ts"

export interface Orchestration {
  readonly run: { readonly id: string; readonly directory: string; readonly config: OrchestratorConfig }
  readonly tasks: TaskSet
  readonly validation: TaskSet | null
  readonly agentOf: AgentOf
  /** The run's model, at the temperature of the sampling or, for validations, greedy. */
  readonly policy: LmService
  readonly encode: Encode
  /** Waits until requests are answered by the run's weights of this step or a later one. */
  readonly awaitWeights: (step: number) => Effect.Effect<void, { readonly message: string }>
  /** Runs before the model plays the tasks of a step, or of a validation. */
  readonly beforePlaying?: Effect.Effect<void>
  /** Called when the samples of a step are written, so that a trainer in this process reads them at once. */
  readonly handedOver?: Effect.Effect<void>
}

/** The errors that end an orchestrator; the trainer evicts its run. */
export type OrchestratorError =
  | LmError
  | SampleError
  | InvalidSample
  | RolloutsError
  | RunFolderError
  | RunStoreError
  | { readonly message: string }

type Needs = FileSystem.FileSystem | Path.Path

/**
 * The number of supervised steps that are made before they are trained. No weights go into them, so all could be made at
 * once, but they would fill the disk.
 */
const supervisedAhead = 4

/** Makes the samples of all steps from `firstStep` on, until `max_steps`. Steps whose samples exist are left as they are. */
export const orchestrate = Effect.fn("effect-rl.orchestrator")(function* (
  orchestration: Orchestration,
  firstStep: number,
): Effect.fn.Return<void, OrchestratorError, Needs> {
  const { run, awaitWeights, validation } = orchestration
  const { maxSteps, maxAsyncLevel, validation: validating } = run.config
  const folder = yield* openRunFolder(run)
  const drawn = drawerOf(orchestration)
  for (let step = firstStep; maxSteps === null || step < maxSteps; step++) {
    const isDue = validation !== null && validating.every > 0 && step % validating.every === 0
    if (isDue) yield* validate(orchestration, folder, validation, step)
    if ((yield* rolloutsState(folder, step)) === "ready") continue
    const isSupervised = objectiveAt(run.config, step).type === "sft"
    const ahead = isSupervised ? Math.max(maxAsyncLevel, supervisedAhead) : maxAsyncLevel
    yield* awaitWeights(Math.max(0, step - ahead))
    const rollouts = yield* isSupervised ? demonstrated(orchestration, drawn, step) : played(orchestration, drawn, step)
    const scored = yield* samplesOf(rollouts, {
      run: run.id,
      step,
      objective: objectiveAt(run.config, step),
      temperature: isSupervised ? 1 : run.config.sampling.temperature,
      evenGroups: run.config.batch.evenGroups,
    })
    const { samples, evenGroups, groups } = scored
    const figures = isSupervised ? {} : { ...figuresOf(rollouts, step), "sampling/even_groups": evenGroups / groups }
    const metrics = { "sampling/samples": samples.length, ...figures }
    const { transcripts: telling } = run.config
    const isTold = !isSupervised && telling.every > 0 && step % telling.every === 0
    const told = { step, seenEpisodes: episodesBefore(run.config, step), groups: telling.groups }
    const nowMillis = yield* Clock.currentTimeMillis
    const transcripts = isTold ? transcriptsOfStep({ ...scored, rollouts }, { ...told, nowMillis }) : []
    yield* writeRollouts(folder, { step, samples, report: { metrics, transcripts } })
    if (orchestration.handedOver !== undefined) yield* orchestration.handedOver
  }
  if (validation !== null && maxSteps !== null && validating.every > 0)
    yield* validate(orchestration, folder, validation, maxSteps)
})

/** Returns the tasks of a step. The counter of draws is a function of the step, so a resumed run draws the same. */
const drawerOf = ({ tasks, run }: Orchestration) => {
  const { seed, batch, supervised } = run.config
  const taskOf = taskOrder({ seed, size: tasks.size })
  const perStep = batch.size / batch.groupSize
  return (step: number): ReadonlyArray<number> => {
    const supervisedSteps = Math.min(step, supervised.steps)
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

const demonstrated = (orchestration: Orchestration, drawn: Drawn, step: number) => {
  const { agentOf, encode } = orchestration
  const requests = drawn(step).map((task, at) => requestOf(orchestration, step, task, at))
  return playAll(orchestration, requests, demonstrations(agentOf, encode))
}

const played = Effect.fnUntraced(function* (orchestration: Orchestration, drawn: Drawn, step: number) {
  const { run, policy, agentOf, beforePlaying = Effect.void } = orchestration
  yield* beforePlaying
  const agent = yield* agentOf(seeded(policy))
  const requests = drawn(step).flatMap((task, at) =>
    RolloutRequest.repeat(requestOf(orchestration, step, task, at), run.config.batch.groupSize),
  )
  const protocol = run.config.protocol === "self_play" ? SelfPlay.make(agent) : SingleAgent.make(agent)
  return (yield* playAll(orchestration, requests, protocol)).filter(isPlayed)
})

/** Plays all requests at once, and returns the rollouts in the order of the requests. A failed episode ends the run. */
const playAll = Effect.fnUntraced(function* (
  { tasks }: Pick<Orchestration, "tasks">,
  requests: ReadonlyArray<RolloutRequest.RolloutRequest>,
  protocol: Protocol,
) {
  const all: Array<Rollout> = []
  let failure: string | undefined
  yield* RolloutEngine.each({ requests, tasks, protocol, concurrency: requests.length }, (outcome) =>
    Effect.sync(() => {
      if (outcome.failure !== null) failure ??= `${outcome.request.id}: ${outcome.failure.message}`
      all.push(...outcome.rollouts)
    }),
  )
  if (failure !== undefined) return yield* Effect.fail({ message: failure })
  return all
})

/**
 * Plays all validation tasks once, greedily, with the weights that a step begins with, unless an earlier process did. The
 * scores are the env's, so that an answer that is cut off counts as wrong, whatever penalty trains against it.
 */
const validate = Effect.fnUntraced(function* (
  orchestration: Orchestration,
  folder: RunFolder,
  tasks: TaskSet,
  step: number,
) {
  if (yield* hasValidation(folder, step)) return
  const { run, policy, agentOf, awaitWeights, beforePlaying = Effect.void } = orchestration
  yield* awaitWeights(step)
  yield* beforePlaying
  const greedy: LmService = { complete: (request) => policy.complete({ ...request, temperature: 0 }) }
  const agent = yield* agentOf(greedy)
  const requests = [...RolloutRequest.forTasks(tasks, { seed: run.config.seed, name: "validation" })]
  const rollouts = yield* playAll({ tasks }, requests, SingleAgent.make(agent))
  const transcripts = transcriptsOfValidation(rollouts, { step, nowMillis: yield* Clock.currentTimeMillis })
  yield* writeValidation(folder, { step, scores: rollouts.map(scoreOf), transcripts })
})

/** Computes the mean reward and answer length, and how many steps older than `step` the weights were that answered. */
const figuresOf = (rollouts: ReadonlyArray<Rollout>, step: number): Readonly<Record<string, number>> => {
  const completions = rollouts.map(({ steps }) =>
    steps.flatMap((one) => (one._tag === "AgentStep" ? [one.call.completion] : [])),
  )
  const ages = completions
    .flat()
    .flatMap(({ tokens }) => (tokens?.weights === undefined ? [] : [step - tokens.weights.step]))
  return {
    "sampling/reward": meanOf(rollouts.map(({ totalReward }) => totalReward)),
    "sampling/answer_tokens": meanOf(
      completions.map((calls) => calls.reduce((sum, { usage }) => sum + usage.outputTokens, 0)),
    ),
    ...(ages.length === 0 ? {} : { "sampling/staleness": meanOf(ages) }),
  }
}
