import { Effect, type FileSystem, Option, type Path } from "effect"
import { Command } from "effect/cli"
import { isExperiment } from "../train/runtime/isExperiment.ts"
import { flags, type Given } from "./flags.ts"
import { readYaml } from "./loadTraining.ts"
import { sweep, type SweepError } from "./sweep/sweep.ts"
import { trainOnce } from "./trainOnce.ts"
import { UsageError } from "./UsageError.ts"

export const run = Command.make("run", flags, (given) => execute(given)).pipe(
  Command.withDescription(
    "Train: run the training that a file describes, and keep everything about it in a folder. Ctrl-C saves and says how to " +
      "go on; kill -USR1 keeps the step that a run is at (its evaluation, policy and episodes, in steps/) and disturbs nothing",
  ),
  Command.withShortDescription("Train"),
  Command.withExamples([
    { command: "effect run examples/cartpole.ts --seed 1", description: "Train, and watch it" },
    {
      command: "effect run examples/cartpole.ts --set algorithm.learning_rate=1e-3 --total-steps 50000",
      description: "With other settings",
    },
    {
      command: "effect run examples/cartpole.ts --seeds 1..10",
      description: "Ten seeds, and how sure one can be of their mean",
    },
    {
      command: "effect run examples/cartpole.ts --population algorithm=ppo,a2c num_envs=8,16 --seeds 1..5 --dry-run",
      description: "What a sweep would run: every value with every other and every seed",
    },
    {
      command: "effect run examples/cartpole.ts --resume latest",
      description: "Go on where Ctrl-C or a crash left it",
    },
    {
      command: "effect run results/…/config.yaml --json | jq .validation",
      description: "Repeat a run from its own config",
    },
  ]),
)

const execute = Effect.fnUntraced(function* (
  given: Given,
): Effect.fn.Return<void, SweepError, FileSystem.FileSystem | Path.Path> {
  const isSweep = given.population.length > 0 || Option.isSome(given.seeds)
  if (given.population.length === 0 && given.more.length > 0) {
    return yield* new UsageError({ message: `unexpected argument "${given.more[0]}"` })
  }
  if (given.dryRun && !isSweep && Option.isSome(given.resume)) {
    return yield* new UsageError({ message: "--dry-run and --resume go together for sweeps only" })
  }
  if (given.backend !== "auto" && /\.ya?ml$/.test(given.file) && isExperiment(yield* readYaml(given.file))) {
    const message = `--backend ${given.backend}: it is for trainers; for an agent that talks, its model's server computes`
    return yield* new UsageError({ message })
  }
  return yield* isSweep || given.dryRun ? sweep(given) : trainOnce(given)
})
