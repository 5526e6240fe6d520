/** Reads and applies the named texts of an agent that a config describes. `AgentKind.ts` calls it. */
import { Effect, type FileSystem, Path, Schema } from "effect"
import { choiceHint } from "../../../base/config/closest.ts"
import { ConfigError, snakeCase } from "../../../base/config/Config.ts"
import { exists, mostBytes, readText } from "../../../base/config/files.ts"
import { jsonText } from "../../../base/config/jsonText.ts"
import { locate } from "../../../base/config/places.ts"
import { messageOf, oneLine } from "../../../base/config/text.ts"
import { learntTexts } from "../../../run/Layout.ts"
import type { From } from "./prompts.ts"

/** The Schema of pairs of a name and a text in a config. Names are data, so they are not keys: those would be renamed. */
const TextPairs = Schema.Array(Schema.Tuple([Schema.NonEmptyString, Schema.String])).check(Schema.isMaxLength(1000))

/** The Schema of the key `texts` of an agent: a file or a run's folder, or pairs of a name and a text. */
export const NamedTexts = Schema.Union([Schema.NonEmptyString, TextPairs])

const decodeFile = Schema.decodeUnknownEffect(jsonText(Schema.Record(Schema.String, Schema.String)))

type Texts = Readonly<Record<string, string>>

/** The name of the text with few-shot examples, which follows the system prompt. */
const examples = "examples"

/** The keys of the prompts with which an agent acts. */
const actingPrompts: ReadonlyArray<string> = ["systemPrompt", "agentSystemPrompt"]

const toolPrefix = "tool:"

/** Reads `texts.json`: the file itself, or that of a run's folder. */
const readFile = Effect.fnUntraced(function* (file: string, from: From) {
  const refuse = (problem: string) => ConfigError.at(from, "texts", problem)
  const { path, isThere, tried } = yield* locate(file, from.baseDir ?? ".")
  if (!isThere)
    return yield* refuse(`expected ${learntTexts}, or a run's folder, at ${tried.join(" or ")}, found nothing`)
  const inFolder = (yield* Path.Path).join(path, learntTexts)
  const place = (yield* exists(inFolder)) ? inFolder : path
  const text = yield* Effect.mapError(readText(place, mostBytes.prompt), ({ message }) =>
    refuse(`expected a file to read at ${place}: ${message}`),
  )
  return yield* Effect.mapError(decodeFile(text), (error) =>
    refuse(`${place}: expected JSON with a text for each name: ${oneLine(messageOf(error))}`),
  )
})

/** Reads the texts of the config of an agent with code of its own, which may ask for texts by any names. */
export const readOutsideTexts = (
  texts: typeof NamedTexts.Type | Texts,
  from: From,
): Effect.Effect<Texts, ConfigError, FileSystem.FileSystem | Path.Path> => {
  if (typeof texts === "string") return readFile(texts, from)
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
  const read = typeof texts === "string" ? yield* readFile(texts, from) : Object.fromEntries(texts)
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
