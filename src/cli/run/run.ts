/** Defines the subcommand `effect run`: one training, or a sweep of several. */
import { Effect, type FileSystem, Option, type Path } from "effect"
import { Command } from "effect/cli"
import { kindOf } from "../../run/RunSpec.ts"
import { flags, type Given } from "../flags.ts"
import { isYaml, readYaml } from "../userCode/yamlFile.ts"
import { sweep, type SweepError } from "../sweep/sweep.ts"
import { trainOnce } from "./trainOnce.ts"
import { UsageError } from "../output/errors.ts"

export const run = Command.make("run", flags, (given) => execute(given)).pipe(
  Command.withDescription(
    "Run the training that a file describes, and save everything about it in a folder. Ctrl-C saves a checkpoint and " +
      "prints the command that resumes the run. kill -USR1 writes an evaluation, the policy and episodes of the current " +
      "step to steps/, and the run continues.",
  ),
  Command.withShortDescription("Train: run a training and save it in a folder"),
  Command.withExamples([
    { command: "effect run examples/cartpole.ts --seed 1", description: "Train with seed 1 and show the progress" },
    {
      command: "effect run examples/cartpole.ts --set algorithm.learning_rate=1e-3 --total-steps 50000",
      description: "Change settings",
    },
    {
      command: "effect run examples/cartpole.ts --seeds 1..10",
      description: "Train with ten seeds and report their score with a confidence interval",
    },
    {
      command: "effect run examples/cartpole.ts --population algorithm=ppo,a2c num_envs=8,16 --seeds 1..5 --dry-run",
      description: "List the runs of a sweep without starting them",
    },
    {
      command: "effect run examples/cartpole.ts --resume latest",
      description: "Resume the newest unfinished run, after Ctrl-C or a crash",
    },
    {
      command: "effect run results/…/config.yaml --json | jq .validation",
      description: "Repeat a run from its saved config",
    },
  ]),
)

const execute = Effect.fnUntraced(function* (
  given: Given,
): Effect.fn.Return<void, SweepError, FileSystem.FileSystem | Path.Path> {
  const isSweep = given.population.length > 0 || Option.isSome(given.seeds)
  if (given.population.length === 0 && given.more.length > 0) {
    return yield* new UsageError({
      message: `unexpected argument "${given.more[0]}"; settings to sweep follow --population`,
    })
  }
  if (given.dryRun && !isSweep && Option.isSome(given.resume)) {
    return yield* new UsageError({ message: "--dry-run with --resume only works for sweeps (--seeds or --population)" })
  }
  if (given.backend !== "auto" && isYaml(given.file) && kindOf(yield* readYaml(given.file)) === "agents") {
    const message = `--backend ${given.backend} only works with reinforcement learning; this agent asks a language model`
    return yield* new UsageError({ message })
  }
  return yield* isSweep || given.dryRun ? sweep(given) : trainOnce(given)
})
