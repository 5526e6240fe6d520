/** Defines the subcommand `effect run`: one training, or a sweep of several. */
import { Effect, Option } from "effect"
import { leaves } from "../../../run/find/diff.ts"
import { kindOf } from "../../../run/RunSpec.ts"
import { isBucket, nameOf, subcommand } from "../flags.ts"
import { firstTraining } from "../output/errors.ts"
import { usageError } from "../output/output.ts"
import { withConfigs } from "../trust/ownFiles.ts"
import { isConfig, readYaml } from "../userCode/yamlFile.ts"
import { notForTrainers } from "../bucket/runInBucket.ts"
import { presetFile } from "../presets/packaged.ts"
import { flags, type RunFlags, type TypedRunFlags } from "./flags.ts"
import { trainOnce } from "./trainOnce.ts"

export const run = subcommand(
  "run",
  {
    description:
      "Run the training that a file describes, and save everything about it in a folder. Ctrl-C saves a checkpoint and " +
      "prints the command that resumes the run. kill -USR1 writes an evaluation, the policy and episodes of the current " +
      "step to steps/, and the run continues.",
    examples: {
      "effect run train.ts --seed 1": "Train with seed 1 and show the progress",
      "effect run train.ts --set algorithm.learning_rate=1e-3 --total-steps 50000": "Change settings",
      "effect run --preset ppo/HalfCheetah-v5": "Train with tuned settings, which effect presets lists",
      "effect run train.ts --seeds 1..10": "Train with ten seeds and report their score with a confidence interval",
      "effect run train.ts --population algorithm=ppo,a2c num_envs=8,16 --seeds 1..5 --dry-run":
        "List the runs of a sweep without starting them",
      "effect run train.ts --resume latest": "Resume the newest unfinished run of this name, after Ctrl-C or a crash",
      "effect run results/…/config.yaml --json | jq .validation": "Repeat a run from its saved config",
    },
  },
  flags,
  Effect.fnUntraced(function* (typed) {
    const input = yield* withFile(typed)
    return yield* runOf(input).pipe(withConfigs(input.file, Option.toArray(input.config), Option.isNone(input.resume)))
  }),
)

/** Finds the file of the training: the one that was typed, or that of the preset. */
const withFile = Effect.fnUntraced(function* ({ file, preset, ...typed }: TypedRunFlags) {
  if (Option.isNone(preset)) {
    if (Option.isSome(file)) return { ...typed, file: file.value }
    return yield* usageError(
      `Missing required argument: file; see \`effect run --help\`, or ${firstTraining()}, or choose tuned settings of \`effect presets\``,
    )
  }
  const input = { ...typed, file: yield* presetFile(preset.value) }
  if (Option.isNone(file)) return input
  // Without a file, the first argument is one of the settings that follow --population.
  if (input.population.length > 0) return { ...input, more: [file.value, ...input.more] }
  return yield* usageError(`--preset ${preset.value} takes the place of the file ${file.value}; leave one of them out`)
})

const runOf = Effect.fnUntraced(function* (typed: RunFlags) {
  const input = yield* withRanks(typed)
  const isSweep = input.population.length > 0 || Option.isSome(input.seeds)
  if (input.population.length === 0 && input.more.length > 0) {
    return yield* usageError(`unexpected argument "${input.more[0]}"; settings to sweep follow --population`)
  }
  if (input.dryRun && !isSweep && Option.isSome(input.resume)) {
    return yield* usageError("--dry-run with --resume only works for sweeps (--seeds or --population)")
  }
  if (Option.isSome(input.server)) {
    const isTrainer = !isConfig(input.file) || (yield* kindIn(input.file)) === "multirun"
    if (isSweep || !isTrainer || Option.isNone(input.cluster))
      return yield* usageError("--server only works with --cluster, for a multi-run trainer")
  }
  if (isBucket(input.resultsDir)) {
    if (isConfig(input.file) && (yield* kindIn(input.file)) === "multirun") return yield* usageError(notForTrainers)
  }
  if (input.backend !== "auto" && isConfig(input.file) && (yield* computesNothing(input.file, input.set))) {
    return yield* usageError(
      `--backend ${input.backend} only works with reinforcement learning and with models in this process (decoder:FOLDER); this agent asks another language model`,
    )
  }
  if (!isSweep && !input.dryRun) return yield* trainOnce(input)
  const all = sweeping(input)
  if (input.alert.length === 0) return yield* all
  const { alerting, alertsOf } = yield* Effect.promise(() => import("../alerts/alerts.ts"))
  if (input.dryRun) return yield* Effect.andThen(alertsOf(input.alert), all)
  const about = { run: input.resultsDir, name: nameOf(input) }
  return yield* alerting({ flags: input.alert, about, what: "a sweep" }, all)
})

/** Trains a sweep, in a folder or in a bucket. */
const sweeping = Effect.fnUntraced(function* (input: RunFlags) {
  if (isBucket(input.resultsDir)) {
    const { sweepInBucket } = yield* Effect.promise(() => import("../bucket/sweepInBucket.ts"))
    return yield* sweepInBucket(input)
  }
  const { sweep } = yield* Effect.promise(() => import("../../sweep/sweep.ts"))
  return yield* sweep(input)
})

/** Adds the setting that corresponds to the flag `--ranks`. */
const withRanks = Effect.fnUntraced(function* (input: RunFlags) {
  if (Option.isNone(input.ranks)) return input
  const kind = isConfig(input.file) ? yield* kindIn(input.file) : "training"
  if (kind !== "training" && kind !== "multirun")
    return yield* usageError("--ranks only works with reinforcement learning and with multi-run trainers")
  return { ...input, set: [...input.set, `${kind === "multirun" ? "trainer.ranks" : "ranks"}=${input.ranks.value}`] }
})

const kindIn = (file: string) => Effect.map(readYaml(file), kindOf)

/** Tells whether a file trains agents that ask only models in other processes, so that no backend is needed. */
const computesNothing = Effect.fnUntraced(function* (file: string, settings: ReadonlyArray<string>) {
  const config = yield* readYaml(file)
  const values = [...leaves(config).values(), ...settings.map((setting) => setting.slice(setting.indexOf("=") + 1))]
  const isDecoder = (value: unknown): boolean => typeof value === "string" && value.startsWith("decoder:")
  return kindOf(config) === "agents" && !values.some(isDecoder)
})
