/** Defines the subcommand `effect orchestrate`, which plays the tasks of a trainer's runs in a process of its own. */
import { join } from "node:path"
import { Effect, Option, Redacted } from "effect"
import { exists } from "../../base/files/files.ts"
import type { PlayEvent } from "../../trainer/outside/orchestrateFolder.ts"
import { TrainerError } from "../../trainer/TrainerError.ts"
import type { ServerEvent } from "../../trainer/outside/InferenceServer.ts"
import { mostAttempts } from "../../trainer/outside/persistence.ts"
import { runsIn, type TrainerFolder, trainerAt } from "../../trainer/trainerFolder.ts"
import { platform } from "../../node.ts"
import { owner } from "../../run/store/owner-node.ts"
import { argument, subcommand, text, textOr, toggle, trustFlag } from "./flags.ts"
import { usageError, writeError, writeJson } from "./output/output.ts"

export const orchestrate = subcommand(
  "orchestrate",
  {
    description:
      "Play the tasks of a trainer's runs with answers of an inference server, and hand the samples to the trainer, whose " +
      "config has orchestrators: outside. It can be stopped by Ctrl-C and started again at any moment, and waits for a " +
      "server that is down. It ends when all runs have ended, with code 1 if it had to evict one of them.",
    examples: {
      "effect orchestrate results/…/0001": "Play all runs of a trainer, with effect serve on this machine",
      "effect orchestrate results/…/0001 --server http://gpu:8000": "Use a server on another machine",
      "effect orchestrate results/…/0001 --run letters": "Play one of the runs",
    },
  },
  {
    trainer: argument("trainer", "The folder of a trainer, or of one of its runs"),
    server: textOr(
      "http://127.0.0.1:8000",
      "server",
      "url",
      "The address of the inference server (default: http://127.0.0.1:8000)",
    ),
    apiKey: text("api-key", "key", "The server's API key (default: none)"),
    run: text("run", "name", "Play only this run; its folder is run_NAME (default: all runs)"),
    trust: trustFlag,
    quiet: toggle("quiet", "Print only errors"),
    json: toggle("json", "Print how each run ended as one line of JSON"),
  },
  Effect.fnUntraced(function* (input) {
    const trainer = yield* trainerAt(input.trainer)
    if (trainer === undefined) {
      const problem = (yield* exists(input.trainer))
        ? "expected the folder of a trainer (config.yaml with kind: multirun)"
        : "there is no such folder"
      return yield* usageError(`${input.trainer}: ${problem}`)
    }
    if (trainer.settings.orchestrators !== "outside") {
      const problem = "its trainer plays the tasks itself; train with orchestrators: outside"
      return yield* usageError(`${join(trainer.directory, "config.yaml")}: orchestrators: ${problem}`)
    }
    const only = yield* onlyRun(trainer, input.run)
    const say = (line: string, isProblem: boolean) =>
      input.quiet && !isProblem ? Effect.void : writeError(`${line}\n`)
    const evicted: Array<string> = []
    const givenUp: Array<string> = []
    const tell = (event: PlayEvent) => {
      if (event._tag === "GivenUp") givenUp.push(`${event.id}: ${event.reason}`)
      if (event._tag === "Ended" && event.isEvictedHere) evicted.push(event.id)
      return say(playLine(event), event._tag === "Ended" && event.reason !== null)
    }
    // The orchestrators are loaded only here, so that the other subcommands start fast.
    const { connect } = yield* Effect.promise(() => import("../../trainer/outside/InferenceServer.ts"))
    const { orchestrateFolder } = yield* Effect.promise(() => import("../../trainer/outside/orchestrateFolder.ts"))
    const states = yield* Effect.gen(function* () {
      const server = yield* connect({
        url: input.server,
        apiKey: Option.getOrNull(Option.map(input.apiKey, (key) => Redacted.make(key))),
        report: (event) => say(serverLine(input.server, event), event._tag === "Failing"),
      })
      return yield* orchestrateFolder({ trainer, only, server, owner, report: tell })
    }).pipe(Effect.scoped, Effect.provide(platform))
    if (input.json)
      yield* writeJson(states.map((state) => ({ run: state.id, ended: state._tag, reason: reasonIn(state) })))
    if (givenUp.length > 0)
      return yield* new TrainerError({ message: `given up after ${mostAttempts} attempts: ${givenUp.join("; ")}` })
    if (evicted.length > 0)
      return yield* new TrainerError({ message: `evicted, because the orchestrator failed: ${evicted.join(", ")}` })
  }),
)

/** Returns the name of the folder of the run to play; null for all runs. */
const onlyRun = Effect.fnUntraced(function* (trainer: TrainerFolder, typed: Option.Option<string>) {
  if (Option.isNone(typed)) return trainer.run
  const { value: name } = typed
  const runs = yield* runsIn(trainer.directory)
  const found = runs.find((run) => run === name || run === `run_${name}`)
  if (found !== undefined) return found
  return yield* usageError(
    `--run: there is no run ${name} in ${trainer.directory}; it has ${runs.join(", ") || "none"}`,
  )
})

const reasonIn = (state: object): unknown => ("reason" in state ? state.reason : null)

const serverLine = (server: string, event: ServerEvent): string => {
  if (event._tag === "Failing") return `${event.message}; waiting for the server`
  if (event._tag === "Answering") return `${server} answers again`
  const { model, step, found } = event
  const state = found === null ? "does not have it" : `has step ${found}`
  return `${model}: waiting for the weights of step ${step}; the server ${state}`
}

const playLine = (event: PlayEvent): string => {
  const { id } = event
  switch (event._tag) {
    case "Begun":
      return `${id}: playing from step ${event.step}`
    case "Ended":
      return event.reason === null ? `${id}: all steps are trained` : `${id}: ended: ${event.reason}`
    case "GivenUp":
      return `${id}: given up: ${event.reason}`
    case "Again":
      return `${id}: beginning again: ${event.reason}`
  }
}
