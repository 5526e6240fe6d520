/**
 * Answers the requests of a search for better prompts: plays tasks with given texts, and asks the reflection model. Answers
 * that the journal already has are read from it; new ones are written to it at once.
 */
import { Effect } from "effect"
import { cores } from "../episode/cores.ts"
import { inOrder } from "../episode/rollouts/inOrder.ts"
import type { EpisodeFailure } from "../episode/Protocol.ts"
import * as Rollouts from "../episode/rollouts/Rollouts.ts"
import type { Agent } from "../agent/Agent.ts"
import type { AgentError } from "../agent/AgentError.ts"
import { AgentTexts, AskedTexts } from "../agent/AgentTexts.ts"
import type { ConfigError } from "../../base/config/Config.ts"
import type { FormatError } from "../../base/formats/FormatError.ts"
import { stream } from "../../base/rng/Rng.ts"
import * as Evaluate from "../evaluate/Evaluate.ts"
import { episodeEnded, stepScored } from "../evaluate/events.ts"
import type { EpisodeToScore } from "../evaluate/PlayedEpisode.ts"
import { episodeRow } from "../evaluate/rows.ts"
import type { Scorer } from "../evaluate/Scorer.ts"
import type { SpendingCounter } from "../lm/middleware/budgeted.ts"
import { SamplingSeed } from "../lm/middleware/seeded.ts"
import { CallContext, type LmService } from "../lm/Lm.ts"
import { type LmConfig, type Price, request as lmRequest } from "../lm/LmConfig.ts"
import { isOutage as isCallOutage, LmError } from "../lm/LmError.ts"
import type { DatasetError, TaskSet } from "../task/TaskSet.ts"
import { CurrentRun } from "../../run/CurrentRun.ts"
import * as Layout from "../../run/Layout.ts"
import type { RunEvent } from "../../run/record/RunEvent.ts"
import type { Part } from "../../run/store/FileTree.ts"
import type { RunFiles } from "../../run/store/RunFiles.ts"
import type { RunStoreError } from "../../run/store/RunStoreError.ts"
import type { Texts } from "./candidates.ts"
import { exampleText, shotOf } from "./examples.ts"
import * as Journal from "./journal.ts"
import { promptFor, reflectionOf } from "./reflection.ts"
import { type Reflection, type TasksToPlay, type TextToImprove, type Trial, validationPlace } from "./search.ts"

/** The agent whose texts are learned. */
interface LearningAgent {
  readonly type: string
  readonly model: string | null
  readonly price: Price | undefined
  /** Makes the agent with the texts of the reference `AgentTexts`. */
  readonly make: Effect.Effect<Agent, ConfigError | AgentError>
  /** Returns the agent's own texts. A function agent has none but those for which it has asked. */
  readonly texts: (asked: Texts) => Texts
}

/** The reflection model. */
export interface Reflector {
  readonly lm: LmService
  readonly config: LmConfig
  /** The prompt with its placeholders. */
  readonly prompt: string
}

/** The set of tasks that a request names; `test` tasks are played after the search. */
type TaskSetName = TasksToPlay["set"] | "test"

export interface Playing {
  readonly agent: LearningAgent
  readonly sets: Readonly<Record<TaskSetName, TaskSet | null>>
  readonly seed: number
  readonly scorer: Scorer
  readonly failureScore: number
  readonly workers: number | null
  readonly maxStepsPerEpisode: number | null
  readonly reflector: Reflector | null
  readonly spent: SpendingCounter
}

export type PlayError = ConfigError | AgentError | LmError | DatasetError | FormatError | RunStoreError

/** The length and the ending of an episode, for the record of a validation. */
type Ended = Pick<EpisodeToScore["ending"], "terminated" | "truncated"> & { readonly length: number }

/** A player with the journal of the run. */
export interface Player {
  readonly play: (
    request: Omit<TasksToPlay, "set"> & { readonly set: TaskSetName },
  ) => Effect.Effect<ReadonlyArray<Trial>, PlayError, CurrentRun>
  readonly reflect: (request: TextToImprove) => Effect.Effect<Reflection, PlayError, CurrentRun>
  /** Returns the agent's own texts. They are complete once the seed has played the validation tasks. */
  readonly seedTexts: () => Texts
  /** The endings of the validation episodes since `forget`, by their tasks. */
  readonly endings: ReadonlyMap<number, Ended>
  readonly forget: () => void
  /** The number of recorded episodes. */
  readonly count: () => number
}

/**
 * Tells whether an episode failed because a model could not be reached or may not be asked. Then the run stops, since the
 * texts are not at fault: such a score would be wrong, and would remain wrong after a resume.
 */
const isOutage = (error: EpisodeFailure | DatasetError): error is LmError | DatasetError =>
  error._tag === "DatasetError" || isCallOutage(error)

/** Removes the suggested setting from an error of the reflection model: it belongs to another model of the config. */
const withoutRemedy = ({ model, reason, attempts, message }: LmError): LmError =>
  new LmError({ model, reason, attempts, message })

/** Plays one task, and scores the episode. Returns them with the texts for which the agent asked. */
const playTask = Effect.fnUntraced(function* (
  { agent: about, sets, scorer, seed, workers, maxStepsPerEpisode }: Playing,
  agent: Agent,
  { set, metricCalls }: Pick<TasksToPlay, "metricCalls"> & { readonly set: TaskSetName },
  task: number,
) {
  const tasks = sets[set]
  if (tasks === null) return yield* Effect.die(new Error(`there are no ${set} tasks`))
  const failures: Array<LmError | DatasetError> = []
  const phase = { _tag: "validation", seenEpisodes: metricCalls } as const
  const plan: Evaluate.EvaluationPlan = {
    tasks,
    protocol: Evaluate.frozen(agent, { maxSteps: maxStepsPerEpisode }),
    seed,
    concurrency: workers ?? cores(),
    phase,
    onFailed: (_, error) => void (isOutage(error) && failures.push(error)),
  }
  const asked = new Map<string, string>()
  const played = yield* Effect.provideService(Evaluate.one(plan, task), AskedTexts, (name, own) => {
    if (!asked.has(name)) asked.set(name, own)
  })
  const [outage] = failures
  if (outage !== undefined) return yield* outage
  const row = yield* episodeRow(played, { agent: about.type, scorers: [scorer], price: about.price }).pipe(
    Effect.provideService(CallContext, { phase, purpose: "judgement", episode: task + 1, step: 0 }),
  )
  return { played, row, asked }
})

/** Makes the events of an episode. Training episodes are numbered through the run, others by their tasks. */
const eventsOf = (
  { played, row }: Journal.EpisodeEntry,
  { agent }: Playing,
  { set, metricCalls }: { readonly set: TaskSetName; readonly metricCalls: number },
  number: number,
): ReadonlyArray<RunEvent> => {
  const { env, steps, error, ending, totalScore, task } = played
  const isTraining = set === "train"
  const seenEpisodes = isTraining ? number : metricCalls
  const mode = isTraining ? ("train" as const) : ("validation" as const)
  const about = { mode, seenEpisodes, episode: isTraining ? number + 1 : task + 1, envId: env.id, envType: env.type }
  let episodeScore = 0
  const scored: ReadonlyArray<RunEvent> = steps.map((step, at) => {
    episodeScore += step.score
    return stepScored(step, { ...about, agent, verbose: true, stepIndex: at + 1, episodeScore })
  })
  const failure = { score: null, stepIndex: steps.length + 1, episodeScore: totalScore, error: error?.message ?? "" }
  return [
    ...scored,
    ...(error === null ? [] : [{ _tag: "StepScored" as const, ...about, ...failure }]),
    episodeEnded({ step: number + 1, episode: number, return: row.score, length: steps.length }, ending),
  ]
}

/** The state of a player. */
interface PlayerState {
  readonly playing: Playing
  readonly files: RunFiles
  /** Appends a line to the journal. */
  readonly write: Effect.Success<ReturnType<typeof Journal.open>>
  /** The positions of the answers in the journal of an earlier process. */
  readonly earlier: ReadonlyMap<string, Part>
  readonly appendTrain: AppendText
  readonly endings: Map<number, Ended>
  /** The texts for which the seed's validation asked, in the order of its tasks; the first value of each name. */
  readonly asked: Map<string, string>
  /** The number of recorded episodes. */
  count: number
}

type AppendText = (text: string) => Effect.Effect<void, RunStoreError>

type PlayRequest = Parameters<Player["play"]>[0]

/** Returns what the run has spent so far, for a line of the journal. */
const totalsOf = ({ playing }: PlayerState) =>
  Effect.gen(function* () {
    return { spent: playing.spent.save(), seconds: yield* (yield* CurrentRun).seconds }
  })

/** Returns the line of the journal with this key; undefined if it has none. */
const kept = ({ earlier, files }: PlayerState, key: string) => {
  const part = earlier.get(key)
  return part === undefined ? Effect.undefined : Journal.readAgain(files, part)
}

const trialOf = ({ scorer, failureScore }: Playing, { played, row }: Journal.EpisodeEntry): Trial => ({
  task: played.task,
  score: row.error === null ? (row.scores[scorer.name] ?? failureScore) : failureScore,
  tokens: row.input_tokens + row.output_tokens,
  example: exampleText(played),
  shot: shotOf(played),
})

/** Records an episode. Test episodes are not part of the search, so they are in the journal alone. */
const record = Effect.fnUntraced(function* (
  state: PlayerState,
  entry: Journal.EpisodeEntry,
  request: PlayRequest,
  appendRollout: AppendText,
) {
  const { recording } = yield* CurrentRun
  const { task, steps, rollouts, ending } = entry.played
  const { terminated, truncated } = ending
  if (request.set === "test") return
  if (request.set === "validation") state.endings.set(task, { terminated, truncated, length: steps.length })
  for (const [name, own] of Object.entries(entry.asked ?? {})) if (!state.asked.has(name)) state.asked.set(name, own)
  for (const rollout of rollouts) yield* appendRollout(Rollouts.line(rollout))
  yield* recording.emit(eventsOf(entry, state.playing, request, state.count))
  state.count++
})

/** Plays the tasks of a request that the journal does not have, and records all of them in order. */
const play = Effect.fnUntraced(function* (state: PlayerState, request: PlayRequest) {
  const { playing, files, write } = state
  const { place, set, texts, tasks, metricCalls } = request
  const made = yield* Effect.cached(Effect.provideService(playing.agent.make, AgentTexts, texts))
  const append = set === "train" ? state.appendTrain : yield* files.appending(Layout.validationRollouts(metricCalls))
  const trials: Array<Trial> = []
  const work = Effect.fnUntraced(function* (task: number) {
    const before = yield* kept(state, Journal.keyOf(place, task))
    if (before !== undefined && "played" in before) return before
    const { asked, ...result } = yield* playTask(playing, yield* made, request, task)
    const texts = place === validationPlace(0) && asked.size > 0 ? { asked: Object.fromEntries(asked) } : {}
    const entry = { place, ...result, ...texts, ...(yield* totalsOf(state)) }
    yield* write(entry)
    return entry
  })
  yield* inOrder(tasks, {
    concurrency: playing.workers ?? cores(),
    work,
    emit: (entry) =>
      Effect.tap(record(state, entry, request, append), () => Effect.sync(() => trials.push(trialOf(playing, entry)))),
  })
  return trials
}, Effect.scoped)

/** Calls the reflection model. The answer is null if the model declined: the run can continue without it. */
const ask = Effect.fnUntraced(function* (
  { playing: { seed } }: PlayerState,
  { lm, config }: Reflector,
  prompt: string,
  { metricCalls }: TextToImprove,
) {
  const phase = { _tag: "validation", seenEpisodes: metricCalls } as const
  return yield* lm.complete(lmRequest(config, [{ role: "user", content: prompt }])).pipe(
    Effect.provideService(CallContext, { phase, purpose: "reflection", episode: 0, step: 0 }),
    Effect.provideService(SamplingSeed, stream(seed, "prompts", "reflection", metricCalls).uint32()),
    Effect.catchTag("LmError", (error) =>
      error.reason === "refused" ? Effect.succeed(null) : Effect.fail(withoutRemedy(error)),
    ),
  )
})

const reflect = Effect.fnUntraced(function* (
  state: PlayerState,
  request: TextToImprove,
): Effect.fn.Return<Reflection, PlayError, CurrentRun> {
  const { reflector } = state.playing
  if (reflector === null) return yield* Effect.die(new Error("this learner has no reflection model"))
  const prompt = promptFor(request, reflector.prompt)
  const before = yield* kept(state, Journal.keyOf(request.place))
  const isKept = before !== undefined && "completion" in before
  const completion = isKept ? before.completion : yield* ask(state, reflector, prompt, request)
  if (!isKept) yield* state.write({ place: request.place, prompt, completion, ...(yield* totalsOf(state)) })
  if (completion === null) return { answer: { _tag: "None", reason: "withheld" }, tokens: 0 }
  const { inputTokens, outputTokens } = completion.usage
  return { answer: reflectionOf(completion, request.texts[request.name]), tokens: inputTokens + outputTokens }
})

/** Makes the player of a run. `earlier` has the positions of the answers in the journal of an earlier process. */
export const makePlayer = Effect.fnUntraced(function* (playing: Playing, earlier: ReadonlyMap<string, Part>) {
  const { files } = yield* CurrentRun
  const write = yield* Journal.open(files)
  const appendTrain = yield* files.appending(Layout.trainRollouts)
  const maps = { endings: new Map<number, Ended>(), asked: new Map<string, string>() }
  const state: PlayerState = { playing, files, write, earlier, appendTrain, ...maps, count: 0 }
  const player: Player = {
    play: (request) => play(state, request),
    reflect: (request) => reflect(state, request),
    seedTexts: () => playing.agent.texts(Object.fromEntries(state.asked)),
    endings: state.endings,
    forget: () => state.endings.clear(),
    count: () => state.count,
  }
  return player
})
