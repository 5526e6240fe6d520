import { existsSync } from "node:fs"
import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { Deferred, Effect, Layer, Option, Schema } from "effect"
import { mostBytes } from "../../config/files.ts"
import { readTextWithin } from "../../config/files-node.ts"
import { Argument, Command, Flag } from "effect/cli"
import { kindOf } from "../../run/RunSpec.ts"
import { backend, backendNames, envPool, platform, terminalProgress } from "../../node.ts"
import { RunStore } from "../../run/store/RunStore.ts"
import { Recorder, type Sink } from "../../run/record/Recorder.ts"
import type { RunEvent } from "../../run/record/RunEvent.ts"
import { scores } from "../../run/record/scores.ts"
import { RunOptions } from "../../train/RunOptions.ts"
import { differenceInEpisode, firstDifference, linesOfEpisode, type ScoreDifference } from "./compareScores.ts"
import { digestIn } from "./digestIn.ts"
import { lookupDir, ofKind, runArgument, runFolder } from "../findRun.ts"
import { loadTrainingOf, readYaml, yamlOverrides } from "../userCode/loadTraining.ts"
import { writeOut } from "../output/output.ts"
import { UsageError } from "../UsageError.ts"
import * as Layout from "../../run/Layout.ts"
import { utf8 } from "../../config/utf8.ts"

const flags = {
  run: Argument.String("run").pipe(Argument.withDescription(runArgument)),
  resultsDir: lookupDir,
  file: Flag.String("file").pipe(
    Flag.withMetavar("file"),
    Flag.optional,
    Flag.withDescription("The module that made the run, if its env, algorithm or demonstrations are your own"),
  ),
  episode: Flag.Int("episode").pipe(
    Flag.optional,
    Flag.withDescription("Compare only this training episode (its episode_index in scores.jsonl), and stop after it"),
  ),
  backend: Flag.Literals("backend", backendNames).pipe(
    Flag.withDefault("auto" as const),
    Flag.withDescription("The backend that computes; for the same bits use the run's own, which run.log names"),
  ),
  quiet: Flag.Boolean("quiet").pipe(Flag.withDefault(false), Flag.withDescription("Print no progress")),
  json: Flag.Boolean("json").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Print the outcome as one line of JSON on stdout"),
  ),
}

/** `effect replay RUN`: is the run what its config and seed make of it? */
export const replay = Command.make("replay", flags, (given) => execute(given)).pipe(
  Command.withDescription(
    "Train a run again from its config and seed, in memory, and check that every score and the digest come out the same.",
  ),
  Command.withShortDescription("Train a run again and check that the result is the same"),
  Command.withExamples([
    { command: "effect replay latest", description: "Check the newest run" },
    { command: "effect replay ppo/0001 --episode 7", description: "Check one episode" },
    { command: "effect replay results/…/0001 --file train.ts --json", description: "Check a run of your own env" },
  ]),
)

const trainings = ofKind("a training", "training", "agents")

type Files = ReadonlyMap<string, string>
type Given = Command.Command.Config.Infer<typeof flags>
type ReplayError = UsageError | ReplayDiffers | Effect.Error<Effect.Success<ReturnType<typeof loadTrainingOf>>>

/** It came out differently. */
class ReplayDiffers extends Schema.TaggedError<ReplayDiffers>()("ReplayDiffers", { message: Schema.String }) {}

const execute = Effect.fnUntraced(function* (typed: Given): Effect.fn.Return<void, ReplayError> {
  const { resultsDir, quiet } = typed
  const run = yield* runFolder(typed.run, { folders: [resultsDir], usable: trainings, quiet })
  const given = { ...typed, run }
  const config = join(run, Layout.config)
  if (!existsSync(config)) return yield* new UsageError({ message: `${run}: it is not a run (it has no config.yaml)` })
  if (kindOf(yield* readYaml(config)) === "evaluation") {
    const how = `effect eval ${config} plays it again, and an equal result has the same digest`
    return yield* new UsageError({ message: `${run}: this is an evaluation, not a training; ${how}` })
  }
  const before = yield* Effect.promise(() => scoresIn(run))
  const episode = Option.getOrUndefined(given.episode)
  return yield* episode === undefined ? replayAll(given, before) : replayEpisode(given, before, episode)
})

const replayAll = Effect.fnUntraced(function* (given: Given, before: Files): Effect.fn.Return<void, ReplayError> {
  const { run } = given
  const digest = yield* digestIn(run)
  if (digest === undefined && (before.size === 0 || existsSync(join(run, Layout.returns)))) {
    const message = `${run}: there is nothing to compare with: ${before.size === 0 ? "no scores" : "no digest in metrics.json"}`
    return yield* new ReplayDiffers({ message })
  }
  const { scores: now, digest: digestNow } = yield* played(given)
  const difference = firstDifference(before, now, digest === undefined)
  const lines = [...before.values()].reduce((sum, text) => sum + text.split("\n").length - 1, 0)
  const same = difference === undefined && (digest === undefined || digest === digestNow)
  const found = {
    same,
    lines,
    digest: { then: digest ?? null, now: digestNow ?? null },
    difference: difference ?? null,
  }
  const finish = digest === undefined ? "it was not finished, so there is no digest" : `digest ${digest.slice(0, 16)}`
  return yield* tell(given, found, `${lines} scores; ${finish}`, () => explain(difference, digest, digestNow))
})

const replayEpisode = Effect.fnUntraced(function* (
  given: Given,
  before: Files,
  episode: number,
): Effect.fn.Return<void, ReplayError> {
  const lines = linesOfEpisode(before, episode).length
  if (lines === 0) {
    const message = `--episode ${episode}: ${given.run}/${Layout.trainScores} has no such episode`
    return yield* new UsageError({ message })
  }
  const { scores: now } = yield* played(given, episode)
  const difference = differenceInEpisode(before, now, episode)
  const found = { same: difference === undefined, episode, lines, difference: difference ?? null }
  const what = `episode ${episode}, ${lines} ${lines === 1 ? "score" : "scores"}`
  return yield* tell(given, found, what, () => explain(difference))
})

const tell = (
  { run, json }: Given,
  found: { readonly same: boolean; readonly [key: string]: unknown },
  what: string,
  why: () => string,
): Effect.Effect<void, ReplayDiffers> =>
  Effect.gen(function* () {
    if (json) yield* writeOut(`${JSON.stringify(found)}\n`)
    else if (found.same) yield* writeOut(`the same: ${what}\n`)
    if (!found.same) return yield* new ReplayDiffers({ message: `${run}: ${why()}` })
  })

/** The run again, in memory: its scores, and the digest of one that was not stopped behind some episode. */
const played = Effect.fnUntraced(function* (given: Given, episode?: number) {
  const config = join(given.run, Layout.config)
  const training = yield* loadTrainingOf(given.run, given.file)
  const store = RunStore.memory()
  const over = yield* Deferred.make<undefined>()
  const watch: Sink = () => {
    const isOver = (event: RunEvent): boolean => episode !== undefined && isBehind(event, episode)
    const emit = (events: ReadonlyArray<RunEvent>) =>
      events.some(isOver) ? Effect.asVoid(Deferred.succeed(over, undefined)) : Effect.void
    return Effect.succeed({ emit, flush: Effect.void })
  }
  // Leaving the run after the wanted episode interrupts it, but nobody else did.
  const shown: Sink = (run, about) =>
    Effect.map(terminalProgress(run, about), ({ emit, flush }) => ({
      emit: (events) =>
        Effect.flatMap(Deferred.isDone(over), (isOver) =>
          emit(
            events.map((event) =>
              isOver && event._tag === "RunEnded" && event.reason === "interrupted"
                ? { ...event, reason: "stopped" as const }
                : event,
            ),
          ),
        ),
      flush,
    }))
  const recorder = Recorder.layer(scores, watch, ...(given.quiet ? [] : [shown]))
  const result = yield* training.pipe(
    Effect.provideService(RunOptions, { overrides: yield* yamlOverrides(config), source: config, name: "replay" }),
    Effect.provide(Layer.mergeAll(backend(given.backend), envPool, platform, recorder, store.layer)),
    Effect.raceFirst(Deferred.await(over)),
  )
  const found = [...store.files].flatMap(([path, bytes]) => {
    const start = path.indexOf(`/${Layout.scores}/`) + 1
    return start === 0 ? [] : [[path.slice(start), utf8.decode(bytes)] as const]
  })
  return { scores: new Map(found), digest: result?.digest }
})

/** Trainers count episodes from 0 and tell of each when it ends; of those of agents that talk the steps are told of. */
const isBehind = (event: RunEvent, episode: number): boolean =>
  event._tag === "EpisodeEnded"
    ? event.episode >= episode
    : event._tag === "StepScored" && event.mode === "train" && event.seenEpisodes >= episode

const explain = (difference: ScoreDifference | undefined, then?: string, now?: string): string =>
  difference === undefined
    ? `all scores are the same, but the digest was ${then} and is ${now}: the last weights differ`
    : `${difference.file}, line ${difference.line}, step ${difference.step ?? "?"}: ${difference.key} was ${JSON.stringify(difference.then)} and is ${JSON.stringify(difference.now)}`

const scoresIn = async (run: string): Promise<Files> => {
  const found = new Map<string, string>()
  for (const folder of [Layout.trainScoresFolder, Layout.validationScoresFolder]) {
    for (const name of (await readdir(join(run, folder)).catch(() => [])).sort()) {
      if (name.endsWith(".jsonl"))
        found.set(`${folder}/${name}`, await readTextWithin(join(run, folder, name), mostBytes.text))
    }
  }
  return found
}
