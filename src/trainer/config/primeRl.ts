/**
 * Reads prime-rl's `orch.toml` as the config of a run: its keys are translated where they mean the same here. A key that
 * would change what is learned, and has no equal, is an error which says what to write instead; one that changes no result is
 * left out with a note. Keys of ours may stand beside them, such as a section `[train_dataset]`.
 */
import { Effect } from "effect"
import { closest } from "../../base/text/closest.ts"
import { camelCase, ConfigError, convertPath, isPlain, type Plain } from "../../base/config/Config.ts"
import { setIn } from "../../base/config/plain.ts"
import type { YamlDocument } from "../../base/config/yaml.ts"
import { type KeyRule, ofWhole, primeRlKeys } from "./primeRlKeys.ts"

/** Our keys that prime-rl has with the same name, or below which it has keys of its own. */
const shared: ReadonlySet<string> = new Set(["seed", "max_steps", "max_async_level", "sampling"])

const sections = [...new Set(Object.keys(primeRlKeys).map((path) => path.split(".")[0]))]

/** Tells whether a document has a key that only prime-rl has. */
export const isPrimeRl = (value: unknown): value is Plain =>
  isPlain(value) && sections.some((key) => !shared.has(key) && Object.hasOwn(value, key))

/** The config of a run, and what else a file of prime-rl says. */
interface Translated {
  /** The config in our keys, in snake_case. */
  readonly run: Plain
  /** The model's name, which here is a folder; undefined if the file names none. */
  readonly model: string | undefined
  /** The largest number of tokens of a sample; undefined if the file sets none. */
  readonly width: unknown
  /** Whether the trainer replays routers; undefined if the file does not say it. */
  readonly routerReplay: unknown
  /** The place of each of our keys in the file, by the key's path in camelCase. */
  readonly places: ReadonlyMap<string, string>
  /** A line for each key that is left out. */
  readonly notes: ReadonlyArray<string>
}

/** The state of a translation. */
interface Translation {
  readonly file: string
  readonly document: Document
  /** The keys that are left out, because the file has one of ours in their place. */
  readonly replaced: ReadonlyArray<string>
  readonly values: Map<string, unknown>
  readonly places: Map<string, string>
  readonly notes: Array<string>
  readonly errors: Array<ConfigError>
}

type Document = Pick<YamlDocument, "value" | "keyLineOf">

/** Translates a document of prime-rl's. Fails with all keys that have no equal here. `ours` are the keys of a run's config. */
export const translated = Effect.fnUntraced(function* (
  document: Document,
  file: string,
  ours: ReadonlyArray<string> = [],
): Effect.fn.Return<Translated, ConfigError> {
  const value = isPlain(document.value) ? document.value : {}
  if (!hasAtMost(value, mostKeys))
    return yield* ConfigError.at({ source: file }, "", `expected at most ${mostKeys} keys, found more`)
  const replaced = Object.entries(replacedBy).flatMap(([own, theirs]) => (Object.hasOwn(value, own) ? theirs : []))
  const state: Translation = { file, document, replaced, values: new Map(), places: new Map(), notes: [], errors: [] }
  for (const [key, item] of Object.entries(value)) {
    if (sections.includes(key) || !ours.includes(key)) walk(state, [key], item)
    else takeOurs(state, key, item)
  }
  const [first, ...more] = state.errors
  if (first !== undefined)
    return yield* first.reworded((message) => [message, ...more.map((error) => error.message)].join("; "))
  const { values, places, notes } = state
  const model = values.get("model.path")
  const width = values.get("trainer.width")
  const routerReplay = values.get("trainer.enable_router_replay")
  for (const path of ["model.path", "trainer.width", "trainer.enable_router_replay"]) values.delete(path)
  let run: Plain = {}
  for (const [path, item] of [...Object.entries(defaultsFor(values)), ...values])
    run = setIn(run, path.split("."), item)
  return { run, model: typeof model === "string" ? model : undefined, width, routerReplay, places, notes }
})

/** The largest number of keys of a document, because the keys of a section are translated one after another. */
const mostKeys = 5000

/** Tells whether the sections of a document have at most so many keys. */
const hasAtMost = (document: Plain, most: number): boolean => {
  const waiting = [document]
  let keys = 0
  for (let section = waiting.pop(); section !== undefined; section = waiting.pop()) {
    const values = Object.values(section)
    keys += values.length
    if (keys > most) return false
    waiting.push(...values.filter(isPlain))
  }
  return true
}

/** Keys in the place of which prime-rl has others, which are left out if both are there. */
const replacedBy: Readonly<Record<string, ReadonlyArray<string>>> = {
  train_dataset: ["env", "train.source"],
  validation_dataset: ["eval", "val"],
  objective: ["algo", "advantage"],
  teacher: ["algo"],
  max_async_level: ["max_off_policy_steps"],
}

const isReplaced = ({ replaced }: Translation, name: string): boolean =>
  replaced.some((key) => name === key || name.startsWith(`${key}.`))

const hasKey = ({ document: { value } }: Translation, key: string): boolean =>
  isPlain(value) && Object.hasOwn(value, key)

/** Our sections that prime-rl's keys also fill. */
const mixed: ReadonlySet<string> = new Set(["batch", "lora", "optimiser", "validation", "checkpoint"])

/** Takes a key of ours; key by key if its section may also get values of prime-rl's keys. */
const takeOurs = (state: Translation, key: string, value: unknown): void => {
  if (!isPlain(value) || !mixed.has(key)) return take(state, [key], key, value)
  for (const [inner, item] of Object.entries(value)) take(state, [key, inner], `${key}.${inner}`, item)
}

/** prime-rl's defaults, where they differ from ours. */
const defaultsFor = (values: ReadonlyMap<string, unknown>): Plain => ({
  "batch.size": 128,
  "batch.group_size": 1,
  // Groups are dropped only where rewards are compared.
  ...(["teacher", "critic", "pairs"].some((key) => values.has(key)) ? {} : { "batch.even_groups": "drop" }),
  "validation.every": 100,
  // Rewards minus their mean, averaged over all tokens of a step.
  ...(values.has("objective") ? {} : { objective: groupObjective }),
})

const groupObjective = { type: "dr_grpo", normalisation: { type: "token_mean" } }

/** Applies the rule of a key, or of each key in its section. */
const walk = (state: Translation, path: ReadonlyArray<string>, value: unknown): void => {
  const name = path.join(".")
  const isSection = Object.keys(primeRlKeys).some((key) => key.startsWith(`${name}.`))
  if (isPlain(value) && isSection) {
    for (const [key, item] of Object.entries(value)) walk(state, [...path, key], item)
    return
  }
  const rule = ruleOf(path)
  if (rule !== undefined) return apply(state, path, rule, value)
  // A key of ours in a section that both have, such as sampling.stop.
  if (shared.has(path[0])) return take(state, path, name, value)
  if (state.errors.length >= mostErrors) return
  const near = closest(name, Object.keys(primeRlKeys))
  state.errors.push(errorAt(state, path, near === undefined ? unknownKey : `unknown key; did you mean "${near}"?`))
}

/** The number of errors after which further unknown keys are not named. */
const mostErrors = 20

const unknownKey = "unknown key; expected one of prime-rl's orch.toml, or of ours"

/** Tells whether a section as a whole is left out. */
const isWhole = (state: Translation, name: string): boolean => {
  const rule = Object.hasOwn(primeRlKeys, name) ? primeRlKeys[name] : undefined
  return (rule !== undefined && "ignored" in rule) || state.replaced.includes(name)
}

/** Returns the rule of a key, or of the innermost section around it that has one. */
const ruleOf = (path: ReadonlyArray<string>): KeyRule | undefined => {
  for (let length = path.length; length > 0; length--) {
    const name = path.slice(0, length).join(".")
    if (Object.hasOwn(primeRlKeys, name)) return primeRlKeys[name]
  }
  return undefined
}

const apply = (state: Translation, path: ReadonlyArray<string>, rule: KeyRule, value: unknown): void => {
  const name = path.join(".")
  if ("ignored" in rule) return note(state, path, rule.ignored)
  // A section [validation_dataset] of ours replaces [eval], but says nothing of its interval.
  const isEvery = "means" in rule && rule.means === "validation.every"
  if (isReplaced(state, name) && !isEvery) return note(state, path, "the file has a key of ours in its place")
  if (isEvery && !hasKey(state, "validation_dataset"))
    return note(state, path, "nothing is validated without a section [validation_dataset]")
  if (name === "val.interval" && valueIn(state, "eval", "interval") !== undefined)
    return note(state, path, "eval.interval says when a run is validated")
  if ("refused" in rule) {
    const isHarmless = isOff(value) || (rule.unless ?? []).includes(value)
    if (!isHarmless && !isRepeated(state, path, rule.refused)) state.errors.push(errorAt(state, path, rule.refused))
    return
  }
  if (name === "algo.type") return takeObjective(state, path, value)
  if (name === "train.filter_zero_advantages") return take(state, path, rule.means, value === false ? "keep" : "drop")
  // −1 is no limit there, which is our default.
  if (rule.means === "sampling.top_k" && value === -1) return
  take(state, path, rule.means, value)
}

/** Tells whether an earlier key of the same section was refused because the file has the configs of all programs. */
const isRepeated = ({ errors }: Translation, [section]: ReadonlyArray<string>, reason: string): boolean =>
  reason === ofWhole && errors.some(({ message }) => message.includes(` ${section}.`) && message.endsWith(ofWhole))

/** Returns the value of a key in a section of the file. */
const valueIn = ({ document: { value } }: Translation, section: string, key: string): unknown => {
  const inner = isPlain(value) ? value[section] : undefined
  return isPlain(inner) ? inner[key] : undefined
}

/** Tells whether a list of filters has none that is enforced, so that it changes nothing. */
const isOff = (value: unknown): boolean =>
  Array.isArray(value) && value.every((one) => isPlain(one) && (one["enforce"] === false || isDefaultFilter(one)))

/** prime-rl drops samples without an advantage by default, as `even_groups: drop` does. */
const isDefaultFilter = ({ type, enforce }: Plain): boolean => type === "zero_advantage" && enforce === undefined

/** Our sections that do what an algorithm of prime-rl does. */
const insteadOf: Readonly<Record<string, string>> = { sft: "[supervised]", opd: "[teacher]", opsd: "[teacher]" }

const takeObjective = (state: Translation, path: ReadonlyArray<string>, value: unknown): void => {
  if (value === "grpo") return take(state, path, "objective", groupObjective)
  const instead = typeof value === "string" && Object.hasOwn(insteadOf, value) ? insteadOf[value] : "[objective]"
  state.errors.push(errorAt(state, path, `${String(value)} has no equal; write a section ${instead} of ours instead`))
}

/** Takes a value as that of one of our keys. Two keys of prime-rl's for the same one are an error. */
const take = (state: Translation, path: ReadonlyArray<string>, own: string, value: unknown): void => {
  const line = lineOf(state, path)
  if (state.values.has(own) && own !== "objective")
    state.errors.push(errorAt(state, path, `another key of the file sets the same, ${own}; leave one of them out`))
  state.values.set(own, value)
  if (line !== undefined) state.places.set(convertPath(own.split("."), camelCase).join("."), `${state.file}:${line}`)
}

const lineOf = ({ document }: Translation, path: ReadonlyArray<string>): number | undefined => {
  for (let length = path.length; length > 0; length--) {
    const line = document.keyLineOf(path.slice(0, length))
    if (line !== undefined) return line
  }
  return undefined
}

const errorAt = (state: Translation, path: ReadonlyArray<string>, problem: string): ConfigError => {
  const line = lineOf(state, path)
  return ConfigError.at({ source: line === undefined ? state.file : `${state.file}:${line}` }, path.join("."), problem)
}

/** Notes a key that is left out. The keys of a section are noted once if the section as a whole is left out. */
const note = (state: Translation, path: ReadonlyArray<string>, reason: string): void => {
  const whole = path.slice(0, 1 + path.findIndex((_, at) => isWhole(state, path.slice(0, at + 1).join("."))))
  const { message } = errorAt(state, whole.length === 0 ? path : whole, `left out: ${reason}`)
  if (!state.notes.includes(message)) state.notes.push(message)
}
