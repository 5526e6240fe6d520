import { existsSync } from "node:fs"
import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Layer, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { backend, backendNames, envPool, platform, terminalProgress } from "../node.ts"
import { RunStore } from "../experiment/RunStore.ts"
import { Recorder } from "../record/Recorder.ts"
import { scores } from "../record/scores.ts"
import { RunOptions } from "../train/RunOptions.ts"
import { firstDifference, type ScoreDifference } from "./compareScores.ts"
import { loadTraining, yamlOverrides } from "./loadTraining.ts"
import { UsageError } from "./UsageError.ts"

const flags = {
  run: Argument.String("run").pipe(Argument.withDescription("The folder of a run")),
  file: Flag.String("file").pipe(
    Flag.optional,
    Flag.withDescription("The module that the run was made by, where its env or its demonstrations are your own"),
  ),
  backend: Flag.Literals("backend", backendNames).pipe(
    Flag.withDefault("auto" as const),
    Flag.withDescription("What computes: the same as then, for the same bits; run.log says which"),
  ),
  quiet: Flag.Boolean("quiet").pipe(Flag.withDefault(false), Flag.withDescription("No progress")),
  json: Flag.Boolean("json").pipe(
    Flag.withDefault(false),
    Flag.withDescription("What was found as one line of JSON on stdout"),
  ),
}

/** `effect replay RUN`: is the run what its config and seed make of it? */
export const replay = Command.make("replay", flags, (given) => execute(given)).pipe(
  Command.withDescription(
    "Replay: train again from a run's config and seed, keep nothing, and compare every score and the digest",
  ),
  Command.withShortDescription("Recompute a run, and compare"),
  Command.withExamples([
    { command: "effect replay results/…/0001", description: "Whether it comes out the same here" },
    { command: "effect replay results/…/0001 --file train.ts --json", description: "One of an env of your own" },
  ]),
)

type Given = Command.Command.Config.Infer<typeof flags>
type ReplayError = UsageError | ReplayDiffers | Effect.Error<Effect.Success<ReturnType<typeof loadTraining>>>

/** It came out differently. */
class ReplayDiffers extends Schema.TaggedError<ReplayDiffers>()("ReplayDiffers", { message: Schema.String }) {}

const execute = Effect.fnUntraced(function* (given: Given): Effect.fn.Return<void, ReplayError> {
  const { run } = given
  const config = join(run, "config.yaml")
  if (!existsSync(config)) return yield* new UsageError({ message: `${run}: it is not a run (it has no config.yaml)` })
  const training = yield* loadTraining(Option.getOrElse(given.file, () => config))
  const store = RunStore.memory()
  const recorder = Recorder.layer(scores, ...(given.quiet ? [] : [terminalProgress]))
  const result = yield* training.pipe(
    Effect.provideService(RunOptions, { overrides: yield* yamlOverrides(config), source: config, name: "replay" }),
    Effect.provide(Layer.mergeAll(backend(given.backend), envPool, platform, recorder, store.layer)),
  )
  const before = yield* Effect.promise(() => scoresIn(run))
  const now = new Map(
    [...store.files].flatMap(([path, bytes]) => {
      const file = path.slice(result.runDir.length + 1)
      return file.startsWith("scores/") ? [[file, new TextDecoder().decode(bytes)] as const] : []
    }),
  )
  const digest = yield* Effect.promise(() => digestIn(run))
  if (digest === undefined && (before.size === 0 || existsSync(join(run, "return.json")))) {
    const message = `${run}: there is nothing to compare with: ${before.size === 0 ? "no scores" : "no digest in metrics.json"}`
    return yield* new ReplayDiffers({ message })
  }
  const difference = firstDifference(before, now, digest === undefined)
  const lines = [...before.values()].reduce((sum, text) => sum + text.split("\n").length - 1, 0)
  const same = difference === undefined && (digest === undefined || digest === result.digest)
  if (given.json) {
    const found = { same, lines, digest: { then: digest ?? null, now: result.digest }, difference: difference ?? null }
    process.stdout.write(`${JSON.stringify(found)}\n`)
  } else if (same) {
    const finish =
      digest === undefined ? "it was not finished, so there is no digest" : `digest ${result.digest.slice(0, 16)}`
    process.stdout.write(`the same: ${lines} scores; ${finish}\n`)
  }
  if (same) return
  return yield* new ReplayDiffers({ message: `${run}: ${explain(difference, digest, result.digest)}` })
})

const explain = (difference: ScoreDifference | undefined, then: string | undefined, now: string): string =>
  difference === undefined
    ? `all scores are the same, but the digest was ${then} and is ${now}: the last weights differ`
    : `${difference.file}, line ${difference.line}, step ${difference.step ?? "?"}: ${difference.key} was ${JSON.stringify(difference.then)} and is ${JSON.stringify(difference.now)}`

const scoresIn = async (run: string): Promise<ReadonlyMap<string, string>> => {
  const found = new Map<string, string>()
  for (const folder of ["scores/train", "scores/val"]) {
    for (const name of (await readdir(join(run, folder)).catch(() => [])).sort()) {
      if (name.endsWith(".jsonl")) found.set(`${folder}/${name}`, await readFile(join(run, folder, name), "utf8"))
    }
  }
  return found
}

const Metrics = Schema.fromJsonString(Schema.Struct({ digest: Schema.String }))

/** Of a finished run. */
const digestIn = async (run: string): Promise<string | undefined> => {
  const text = await readFile(join(run, "metrics.json"), "utf8").catch(() => undefined)
  if (text === undefined || !existsSync(join(run, "return.json"))) return undefined
  return Option.getOrUndefined(Schema.decodeUnknownOption(Metrics)(text))?.digest
}
