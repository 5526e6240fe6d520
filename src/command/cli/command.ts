/** Makes the `effect` command with its subcommands, runs it, and reports its failure. main.ts and tests call it. */
import { Console, Effect, Logger } from "effect"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import manifest from "../../../package.json" with { type: "json" }
import { report } from "./output/errors.ts"
import { presenter } from "./output/help.ts"
import { harmlessConsole } from "./output/output.ts"
import { Trust, type TrustService } from "../../base/trust/Trust.ts"
import { isName, type SubcommandName, names, short } from "./subcommands.ts"
import { type CommandError } from "../CommandError.ts"

/**
 * The functions that load the module of each subcommand. Only the modules that a command line needs are loaded, so that the
 * command starts fast.
 */
const subcommands = {
  init: () => import("./init/init.ts").then(({ init }) => init),
  presets: () => import("./presets/presets.ts").then(({ presets }) => presets),
  run: () => import("./run/run.ts").then(({ run }) => run),
  tune: () => import("./tune/tune.ts").then(({ tune }) => tune),
  eval: () => import("./evaluate/evaluate.ts").then(({ evaluate }) => evaluate),
  replay: () => import("./replay/replay.ts").then(({ replay }) => replay),
  export: () => import("./export/export.ts").then(({ exporting }) => exporting),
  import: () => import("./import/import.ts").then(({ importing }) => importing),
  push: () => import("./push/push.ts").then(({ push }) => push),
  runs: () => import("./runs.ts").then(({ runs }) => runs),
  ui: () => import("./ui.ts").then(({ ui }) => ui),
  serve: () => import("./serve/serve.ts").then(({ serve }) => serve),
  gateway: () => import("./gateway/gateway.ts").then(({ gateway }) => gateway),
  openenv: () => import("./openenv/openenv.ts").then(({ openenv }) => openenv),
  orchestrate: () => import("./orchestrate.ts").then(({ orchestrate }) => orchestrate),
  worker: () => import("./worker/worker.ts").then(({ worker }) => worker),
} satisfies Record<SubcommandName, unknown>

const listed = (name: SubcommandName) => Command.make(name).pipe(Command.withShortDescription(short[name]))

/** Tells whether a command line needs no more than the list of subcommands: to print it, or to refuse a misspelt name. */
const needsOnlyList = ([first = "--help", ...rest]: ReadonlyArray<string>): boolean =>
  first.startsWith("-") ? rest.length === 0 && (first === "--help" || first === "-h") : !isName(first)

/** Returns the subcommands that a command line needs: the one that it names, or all. */
const neededFor = (words: ReadonlyArray<string> | undefined) =>
  Effect.promise(() => {
    const [first] = words ?? []
    const isList = words !== undefined && needsOnlyList(words)
    return Promise.all((isName(first) ? [first] : names).map((name) => (isList ? listed(name) : subcommands[name]())))
  })

/** Makes the `effect` command with the subcommands that a command line needs; without a command line, with all of them. */
export const root = (words?: ReadonlyArray<string>) =>
  Effect.map(neededFor(words), (loaded) =>
    Command.make("effect").pipe(
      Command.withDescription(
        "Train and evaluate agents: reinforcement learning, and agents that ask a language model.",
      ),
      Command.withSubcommands(loaded),
      Command.withExamples([
        { command: "effect init", description: "Write a commented file to start from" },
        { command: "effect run train.ts", description: "Train what a file describes" },
        { command: "effect run --preset ppo/CartPole-v1", description: "Train with tuned settings" },
        { command: "effect runs --sort validation:desc", description: "List the runs, the best first" },
        { command: "effect run --help", description: "List the flags of a training" },
        {
          command: "effect tune train.ts --space space.yaml",
          description: "Search for better settings",
        },
        {
          command: "effect eval latest --episodes 1000",
          description: "Play 1,000 episodes with the newest run's policy",
        },
        { command: "effect replay latest", description: "Train it again and check that the result is the same" },
        { command: "effect ui", description: "Look at the runs in a web page" },
        { command: "effect serve MODEL", description: "Serve a language model by OpenAI's protocol" },
        { command: "effect gateway --upstream openai", description: "Record the calls of models by any agents" },
        { command: "effect openenv CartPole-v1", description: "Serve an env or tasks by OpenEnv's protocol" },
        { command: "effect orchestrate TRAINER", description: "Play the tasks of a trainer in another process" },
        { command: "effect worker --join postgres://…", description: "Add this machine to a cluster" },
      ]),
    ),
  )

/** Makes the service of trust. Its rules are loaded at the first question, since most commands ask none. */
const makeTrust = Effect.gen(function* () {
  const rules = yield* Effect.cached(
    Effect.flatMap(
      Effect.promise(() => import("./trust/commandTrust.ts")),
      ({ makeCommandTrust }) => makeCommandTrust,
    ),
  )
  return {
    permit: (request) => Effect.flatMap(rules, ({ permit }) => permit(request)),
    permitKnown: (request) => Effect.flatMap(rules, ({ permitKnown }) => permitKnown(request)),
  } satisfies TrustService
})

/**
 * Runs the `effect` command with the words of a command line, and reports a failure as one line on stderr. `background`
 * runs at the same time (in main.ts, it waits for errors that nothing catches). If it fails, the command is interrupted
 * and saves its work.
 */
export const command = (
  words: ReadonlyArray<string>,
  background: Effect.Effect<never, CommandError> = Effect.never,
): Effect.Effect<void, unknown, Command.Environment> =>
  root(words).pipe(
    Effect.flatMap((loaded) => Command.runWith(loaded, { version: manifest.version })(words)),
    Effect.raceFirst(background),
    Effect.provideServiceEffect(Trust, makeTrust),
    Effect.provide(CliOutput.layerPresenter(presenter)),
    Effect.onExit(report),
    // Programs read results from stdout, so logs go to stderr.
    Effect.provideService(Logger.LogToStderr, true),
    Effect.provideServiceEffect(Console.Console, Effect.map(Console.Console, harmlessConsole)),
  )
