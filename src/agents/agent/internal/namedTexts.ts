/** Reads and applies the named texts of an agent that a config describes. `AgentKind.ts` calls it. */
import { Effect, type FileSystem, Path, Schema } from "effect"
import { choiceHint } from "../../../base/text/closest.ts"
import { ConfigError, isPlain, type Plain, snakeCase } from "../../../base/config/Config.ts"
import { exists, mostBytes, readText } from "../../../base/files/files.ts"
import { jsonText } from "../../../base/text/jsonText.ts"
import { locate } from "../../../base/config/places.ts"
import { messageOf, oneLine } from "../../../base/text/text.ts"
import { FindRun } from "../../../run/FindRun.ts"
import { learntTexts } from "../../../run/Layout.ts"
import type { From } from "./prompts.ts"

/** The Schema of pairs of a name and a text in a config. */
const TextPairs = Schema.Array(Schema.Tuple([Schema.NonEmptyString, Schema.String])).check(Schema.isMaxLength(1000))

/** The Schema of the key `texts` of an agent: a file or a run, or pairs of a name and a text. */
export const NamedTexts = Schema.Union([Schema.NonEmptyString, TextPairs])

const decodeFile = Schema.decodeUnknownEffect(jsonText(Schema.Record(Schema.String, Schema.String)))

type Texts = Readonly<Record<string, string>>

/** The name of the text with few-shot examples, which follows the system prompt. */
const examples = "examples"

/** The keys of the prompts with which an agent acts. */
const actingPrompts: ReadonlyArray<string> = ["systemPrompt", "agentSystemPrompt"]

const toolPrefix = "tool:"

/** Returns the path of the file or the run that a setting names: by its path, or else as commands name runs. */
const find = Effect.fnUntraced(function* (named: string, from: From, key: string) {
  const { path, isThere, tried } = yield* locate(named, from.baseDir ?? ".")
  if (isThere) return path
  const findRun = yield* FindRun
  const refuse = (problem: string) =>
    ConfigError.at(
      from,
      key,
      `expected ${learntTexts} or a run that learned texts, found nothing at ${tried.join(" or ")}${problem}`,
    )
  const folder = yield* Effect.mapError(findRun(named, "prompts"), ({ message }) => refuse(`; ${message}`))
  return (yield* exists(folder)) ? folder : yield* refuse("")
})

/** Reads `texts.json`: the file itself, or that of a run. `key` is the setting that names it. */
const readTextsFile = Effect.fnUntraced(function* (named: string, from: From, key = "texts") {
  const refuse = (problem: string) => ConfigError.at(from, key, problem)
  const path = yield* find(named, from, key)
  const inFolder = (yield* Path.Path).join(path, learntTexts)
  const place = (yield* exists(inFolder)) ? inFolder : path
  const text = yield* Effect.mapError(readText(place, mostBytes.prompt), ({ message }) =>
    refuse(`expected a file to read at ${place}: ${message}`),
  )
  return yield* Effect.mapError(decodeFile(text), (error) =>
    refuse(`${place}: expected JSON with a text for each name: ${oneLine(messageOf(error))}`),
  )
})

/**
 * Moves the texts of the run that `start.texts` names into the section of the agent, so that the saved config has them and a
 * resumed run does not look for the other run again. Any other value of the key is left for the Schema to refuse.
 */
export const withStartTexts = Effect.fnUntraced(function* (
  config: Plain,
  from: From,
): Effect.fn.Return<Plain, ConfigError, FileSystem.FileSystem | Path.Path> {
  const { start, agent = {} } = config
  if (!isPlain(start) || typeof start.texts !== "string" || !isPlain(agent)) return config
  if (agent.texts !== undefined)
    return yield* ConfigError.at(from, "start.texts", "the agent has texts already (agent.texts); use one of the two")
  const { texts: named, ...others } = start
  const texts = Object.entries(yield* readTextsFile(named, from, "start.texts"))
  return { ...config, start: Object.keys(others).length === 0 ? null : others, agent: { ...agent, texts } }
})

/** Reads the texts of the config of an agent with code of its own, which may ask for texts by any names. */
export const readOutsideTexts = (
  texts: typeof NamedTexts.Type | Texts,
  from: From,
): Effect.Effect<Texts, ConfigError, FileSystem.FileSystem | Path.Path> => {
  if (typeof texts === "string") return readTextsFile(texts, from)
  return Effect.succeed(isPairs(texts) ? Object.fromEntries(texts) : texts)
}

const isPairs = Schema.is(TextPairs)

/**
 * Reads the texts of an agent's config by name. Fails at a name that an agent with these prompts cannot have.
 */
export const readTexts = Effect.fnUntraced(function* (
  texts: typeof NamedTexts.Type | undefined,
  promptKeys: ReadonlyArray<string>,
  from: From,
): Effect.fn.Return<Texts, ConfigError, FileSystem.FileSystem | Path.Path> {
  if (texts === undefined) return {}
  const read = typeof texts === "string" ? yield* readTextsFile(texts, from) : Object.fromEntries(texts)
  const known = [...promptKeys.map(snakeCase), examples]
  const unknown = Object.keys(read).find((name) => !known.includes(name) && !name.startsWith(toolPrefix))
  if (unknown === undefined) return read
  const hint = choiceHint(unknown, [...known, `${toolPrefix}NAME`])
  return yield* ConfigError.at(from, "texts", `unknown text "${unknown}"; ${hint}`)
})

/** Returns the texts of an agent by name: its system prompt, the other prompts that it has, and the texts of its config. */
export const ownTexts = (prompts: Texts, replaced: Texts): Texts => ({
  system_prompt: "",
  ...Object.fromEntries(Object.entries(prompts).map(([key, text]) => [snakeCase(key), text])),
  ...replaced,
})

/** The prompts of an agent by their keys, and the descriptions of tools by the tools' names. */
interface AppliedTexts {
  readonly prompts: Texts
  readonly toolDescriptions: Texts
}

/** Applies named texts to the prompts of an agent. An empty text removes a prompt. */
export const applied = (prompts: Texts, promptKeys: ReadonlyArray<string>, texts: Texts): AppliedTexts => {
  const result: Record<string, string> = { ...prompts }
  for (const key of promptKeys) {
    const text = texts[snakeCase(key)]
    if (text === "" && prompts[key] !== "") delete result[key]
    else if (text !== undefined) result[key] = text
  }
  const shots = texts[examples] ?? ""
  if (shots !== "") {
    const acting = actingPrompts.filter((key) => key === "systemPrompt" || key in result)
    for (const key of acting) result[key] = [result[key] ?? "", shots].filter((part) => part !== "").join("\n\n")
  }
  const tools = Object.entries(texts).flatMap(([name, text]) =>
    name.startsWith(toolPrefix) ? [[name.slice(toolPrefix.length), text] as const] : [],
  )
  return { prompts: result, toolDescriptions: Object.fromEntries(tools) }
}
