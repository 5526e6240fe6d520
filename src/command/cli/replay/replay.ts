/**
 * Defines `effect replay RUN`, which trains a run again in memory, and compares all scores and the digest (a hash of the
 * result). Runs of a language model's trainer are trained again in a temporary folder, because the parts of such a trainer
 * exchange files.
 */
import { join } from "node:path"
import { Deferred, Effect, Layer, Option } from "effect"
import { exists } from "../../../base/files/files.ts"
import { shownDigest } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import {
  backend,
  envPool,
  platform,
  rankProcesses,
  terminalProgress,
  trainerThreads,
  trainingRanks,
} from "../../../node.ts"
import * as Layout from "../../../run/Layout.ts"
import { Recorder, type Sink } from "../../../run/record/Recorder.ts"
import type { RunEvent } from "../../../run/record/RunEvent.ts"
import { scores } from "../../../run/record/scores.ts"
import { kindOf } from "../../../run/RunSpec.ts"
import { foldersOnDisk } from "../../../run/savedAt.ts"
import { codeOf, differingFrom } from "../../../run/store/code-node.ts"
import { RunStore } from "../../../run/store/RunStore.ts"
import { RunOptions } from "../../../run/RunOptions.ts"
import { requireConfig, runFolder, trainings, warn } from "../findRun.ts"
import { withRunsOnDisk } from "../openRuns.ts"
import { sessionOptions, subcommand, threadsOfEach } from "../flags.ts"
import { usageError, writeJson, writeOut } from "../output/output.ts"
import { digestIn } from "../run/finished.ts"
import { loadTrainingOf } from "../userCode/loadTraining.ts"
import { isConfig, readYaml, yamlOverrides } from "../userCode/yamlFile.ts"
import { scoresIn, scoresOfAll } from "./scoreFiles.ts"
import * as Scores from "./compareScores.ts"
import { flags, type ReplayFlags } from "./flags.ts"
import { CommandError } from "../../CommandError.ts"

export const replay = subcommand(
  "replay",
  {
    description:
      "Train a run again from its config and seed, and check that every score and the digest come out the same. " +
      "A trainer's runs are trained again in a temporary folder, all of them or the one that is named.",
    examples: {
      "effect replay latest": "Check the newest run",
      "effect replay ppo/0001 --episode 7": "Check one episode",
      "effect replay results/…/0001 --file train.ts --json": "Check a run of your own env",
    },
  },
  flags,
  Effect.fnUntraced(function* (typed) {
    const named = { runs: [typed.run], resultsDir: typed.resultsDir }
    yield* withRunsOnDisk(named, { usable: trainings, quiet: typed.quiet }, ({ runs: [run], resultsDir }) =>
      replayNamed({ ...typed, run, resultsDir }),
    )
  }),
)

const replayNamed = Effect.fnUntraced(function* (typed: ReplayFlags) {
  const { resultsDir, quiet } = typed
  const run = yield* runFolder(typed.run, { folders: [resultsDir], usable: trainings, quiet })
  const input = { ...typed, run }
  const config = yield* requireConfig(run)
  const kind = kindOf(yield* readYaml(config))
  if (kind === "evaluation") {
    const how = `effect eval ${config} plays it again, and an equal result has the same digest`
    return yield* usageError(`${run}: this is an evaluation, not a training; ${how}`)
  }
  const episode = Option.getOrUndefined(input.episode)
  if (kind === "multirun") {
    if (episode !== undefined)
      return yield* usageError("--episode does not work with runs of a language model's trainer")
    const { runsOf, trainedAgain } = yield* Effect.promise(() => import("./replayTrainer.ts"))
    const runs = yield* runsOf(run)
    return yield* replayAll(input, yield* scoresOfAll(runs), Effect.scoped(trainedAgain(input, runs)))
  }
  const before = yield* scoresIn(run)
  return yield* episode === undefined
    ? replayAll(input, before, replayed(input))
    : replayEpisode(input, before, episode)
})

/** Compares all scores of the run, and the digest if the run was finished. The Effect `again` trains the run again. */
const replayAll = Effect.fnUntraced(function* <E, R>(
  input: ReplayFlags,
  before: Scores.ScoreFiles,
  again: Effect.Effect<Scores.ReplayedScores, E, R>,
) {
  const { run } = input
  const digestBefore = yield* digestIn(run)
  if (digestBefore === undefined && (before.size === 0 || (yield* exists(join(run, Layout.returns))))) {
    const missing = before.size === 0 ? "no scores" : "no digest in metrics.json"
    return yield* CommandError.failed(`${run}: there is nothing to compare with: ${missing}`)
  }
  const { scores: after, digest: digestAfter, hint } = yield* again
  const difference = Scores.firstScoreDifference(before, after, digestBefore === undefined)
  const lines = [...before.values()].reduce((sum, text) => sum + text.split("\n").length - 1, 0)
  const outcome = {
    same: difference === undefined && (digestBefore === undefined || digestBefore === digestAfter),
    lines,
    digest: { then: digestBefore ?? null, now: digestAfter ?? null },
    difference: difference ?? null,
  }
  const digest =
    digestBefore === undefined ? "it was not finished, so there is no digest" : `digest ${shownDigest(digestBefore)}`
  return yield* conclude(
    input,
    outcome,
    `${lines} scores; ${digest}`,
    () => `${explain(difference, digestBefore, digestAfter)}${hint === undefined ? "" : `; ${hint}`}`,
  )
})

/** Compares the scores of one training episode, after which the replay stops. */
const replayEpisode = Effect.fnUntraced(function* (input: ReplayFlags, before: Scores.ScoreFiles, episode: number) {
  const lines = Scores.linesOfEpisode(before, episode).length
  if (lines === 0) {
    const message = `--episode ${episode}: ${input.run}/${Layout.trainScores} has no such episode`
    return yield* usageError(message)
  }
  const { scores: after } = yield* replayed(input, episode)
  const difference = Scores.differenceInEpisode(before, after, episode)
  const outcome = { same: difference === undefined, episode, lines, difference: difference ?? null }
  const compared = `episode ${episode}, ${lines} ${lines === 1 ? "score" : "scores"}`
  return yield* conclude(input, outcome, compared, () => explain(difference))
})

/** Prints the outcome, and fails with the reason if the replay differs. */
const conclude = Effect.fnUntraced(function* (
  { run, json }: ReplayFlags,
  outcome: { readonly same: boolean; readonly [key: string]: unknown },
  compared: string,
  reason: () => string,
) {
  if (json) yield* writeJson(outcome)
  else if (outcome.same) yield* writeOut(`the same: ${compared}\n`)
  if (!outcome.same) return yield* CommandError.failed(`${run}: ${reason()}`)
})

/** Warns if files of the user's program have changed since the run was made. */
const warnOfOtherCode = Effect.fnUntraced(function* ({ run, file }: ReplayFlags) {
  const folder = join(run, Layout.code)
  if (Option.isNone(file) || isConfig(file.value) || !(yield* exists(folder))) return
  const files = differingFrom(folder, codeOf(file.value))
  if (files.length > 0) yield* warn(`the code differs from that of the run in ${folder}: ${files.join(", ")}`)
})

/**
 * Trains again in memory, to the end of an episode if the user named one. Returns the scores; for a whole run also its
 * digest.
 */
const replayed = Effect.fnUntraced(function* (input: ReplayFlags, episode?: number) {
  const config = join(input.run, Layout.config)
  const training = yield* loadTrainingOf(input.run, input.file)
  yield* warnOfOtherCode(input)
  const store = RunStore.memory()
  const isOver = yield* Deferred.make<undefined>()
  // Ends the replay at the end of the episode that the user named.
  const watch: Sink = () => {
    const isPast = (event: RunEvent): boolean => episode !== undefined && isAfterEpisode(event, episode)
    const emit = (events: ReadonlyArray<RunEvent>) =>
      events.some(isPast) ? Effect.asVoid(Deferred.succeed(isOver, undefined)) : Effect.void
    return Effect.succeed({ emit, flush: Effect.void })
  }
  // This replay is interrupted at the end of the episode, so show it as `stopped` and not as interrupted by the user.
  const progress: Sink = (run, about) =>
    Effect.map(terminalProgress(run, about), ({ emit, flush }) => ({
      emit: (events) =>
        Effect.flatMap(Deferred.isDone(isOver), (isStopped) =>
          emit(
            events.map((event) =>
              isStopped && event._tag === "RunEnded" && event.reason === "interrupted"
                ? { ...event, reason: "stopped" as const }
                : event,
            ),
          ),
        ),
      flush,
    }))
  // The replay is kept in memory, but a run that it starts from (`start.from`) is on disk.
  const folderAt = yield* foldersOnDisk
  const storeReadingDisk = Layer.effect(
    RunStore,
    Effect.map(RunStore, (kept) => RunStore.of({ ...kept, folderAt })),
  ).pipe(Layer.provide(store.layer))
  const recorder = Recorder.layer(scores, watch, ...(input.quiet ? [] : [progress]))
  const options = yield* sessionOptions(input)
  const threads = threadsOfEach(options.threads)
  const result = yield* training.pipe(
    Effect.provideService(RunOptions, { overrides: yield* yamlOverrides(config), source: config, name: "replay" }),
    Effect.provide(
      Layer.mergeAll(
        backend(input.backend, options),
        envPool,
        platform,
        rankProcesses({ backend: input.backend, threads }),
        trainingRanks({ threads }),
        trainerThreads({ backend: input.backend, threads }),
        recorder,
        storeReadingDisk,
      ),
    ),
    Effect.raceFirst(Deferred.await(isOver)),
  )
  const files = [...store.files].flatMap(([path, bytes]) => {
    const start = path.indexOf(`/${Layout.scores}/`) + 1
    return start === 0 ? [] : [[path.slice(start), utf8.decode(bytes)] as const]
  })
  return { scores: new Map(files), digest: result?.digest } satisfies Scores.ReplayedScores
})

/**
 * Tells whether an event shows that an episode has ended. A training of a policy counts episodes from 0 and reports the
 * end of each; a training of agents reports steps, with the number of episodes so far.
 */
const isAfterEpisode = (event: RunEvent, episode: number): boolean =>
  event._tag === "EpisodeEnded"
    ? event.episode >= episode
    : event._tag === "StepScored" && event.mode === "train" && event.seenEpisodes >= episode

/** Returns the reason for the error message: the score that differs; if all scores are equal, that the digest differs. */
const explain = (difference: Scores.ScoreDifference | undefined, before = "", after = ""): string =>
  difference === undefined
    ? `all scores are the same, but the digest was ${shownDigest(before)} and is ${shownDigest(after)}: the last weights differ`
    : `${difference.file}, line ${difference.line}, step ${difference.step ?? "?"}: ${difference.key} was ${JSON.stringify(difference.then)} and is ${JSON.stringify(difference.now)}`
