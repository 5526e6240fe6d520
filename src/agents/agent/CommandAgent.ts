/**
 * Makes an agent from a program in any language (`command` in configs). The program is started for each turn. It reads the
 * task as JSON from its standard input, and writes the answer to its standard output: a text, or JSON with a `text`.
 *
 * @example
 * ```yaml
 * agent:
 *   type: command
 *   command: [python, agent.py]
 *   lm_config: { model: gpt-4.1-mini } # optional: OPENAI_BASE_URL and OPENAI_API_KEY then lead to this model
 * ```
 */
import { Effect, Schema } from "effect"
import { ConfigError, placeOf } from "../../base/config/Config.ts"
import { withDefault } from "../../base/config/fields.ts"
import { permit } from "../../base/trust/Trust.ts"
import { traceparent } from "../lm/spans.ts"
import { AgentPrograms } from "./outside/AgentPrograms.ts"
import { fields, outsideKind } from "./outside/outsideKind.ts"
import { readAnswer, type SentTask, sentTask } from "./outside/sentTask.ts"

const type = "command"

/** The Schema of the config. */
export const config = Schema.Struct({
  ...fields(type),
  /** The program and its arguments. */
  command: Schema.NonEmptyArray(Schema.NonEmptyString),
  /** The folder in which the program starts; null is the current one. */
  cwd: withDefault(Schema.NullOr(Schema.String), null),
  /** The names of the environment variables that the program gets, besides `PATH`, `HOME` and a few others without secrets. */
  variables: withDefault(Schema.Array(Schema.String), []),
})

/** The number of characters up to which a task is also an environment variable. Linux limits each to 128 KiB. */
const mostInEnvironment = 30_000

/**
 * Makes the environment variables with the task, with the address of the model as clients of its APIs expect it, and with the
 * trace that the program's own spans belong to, if there is one.
 */
const environmentOf = ({ text, model }: SentTask, trace: string | undefined): Readonly<Record<string, string>> => ({
  ...(trace !== undefined && { TRACEPARENT: trace }),
  ...(text.length <= mostInEnvironment && { EFFECT_RL_TASK: text }),
  ...(model !== null && {
    EFFECT_RL_MODEL: model.name,
    OPENAI_BASE_URL: model.baseUrl,
    OPENAI_API_KEY: model.apiKey,
    ANTHROPIC_BASE_URL: model.baseUrl.replace(/\/v1$/, ""),
    ANTHROPIC_API_KEY: model.apiKey,
  }),
})

export const kind = outsideKind({
  type,
  schema: config,
  permit: ({ command, cwd, variables, options }, { byName: texts, file }, from) => {
    const isPlainTask = Object.keys(options).length + Object.keys(texts).length === 0
    return permit({
      _tag: "ProgramStart",
      place: `${placeOf(from, "command")}${file === null ? "" : `, with the texts of ${file},`}`,
      command,
      cwd: cwd ?? undefined,
      variables,
      // The texts themselves, not their file: a saved config holds them, and what it asks for must be the same. Texts that a
      // learner of prompts tries are not known yet, and are data like the tasks, which are not asked about either: the program
      // reads both from its standard input and from EFFECT_RL_TASK, and no text becomes a word of the command.
      input: isPlainTask ? null : { options, texts },
    }).pipe(Effect.mapError(({ message }) => ConfigError.at(from, "command", message)))
  },
  ask: (settings) => (turn) =>
    Effect.gen(function* () {
      const { command, cwd, variables } = settings.config
      const sent = yield* sentTask(turn, settings)
      const { run } = yield* AgentPrograms
      const environment = environmentOf(sent, yield* traceparent)
      return readAnswer(yield* run({ agent: type, command, cwd, variables, environment, input: sent.text }))
    }),
})
