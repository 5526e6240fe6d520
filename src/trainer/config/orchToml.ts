/**
 * Makes the config of a multi-run trainer with one run from prime-rl's `orch.toml`, for `effect run orch.toml`: the model is
 * the folder that the file names, and the window is its `seq_len`.
 */
import { Effect } from "effect"
import { camelCase, ConfigError, convertPath, isPlain, type Plain } from "../../base/config/Config.ts"
import { setIn } from "../../base/config/plain.ts"
import { readTomlText } from "../../base/formats/toml.ts"
import { isPrimeRl, translated } from "./primeRl.ts"
import { runKeys } from "./OrchestratorConfig.ts"

/** A trainer's config in snake_case. */
interface TrainerOfOne {
  readonly value: Plain
  /** The place of each key in the file, by the key's path in camelCase. */
  readonly places: ReadonlyMap<string, string>
  /** A line for each key that is left out. */
  readonly notes: ReadonlyArray<string>
}

/** The name of the run. */
const name = "orch"
/** The number of tokens of a window if the file sets none: prime-rl's default. */
const usualWidth = 2048

/**
 * Reads the text of an `orch.toml`. Fails with a `ConfigError` if it is not one of prime-rl's, or has keys without an equal.
 *
 * @example
 * ```ts
 * const text = "group_size = 8\n[model]\nname = 'models/small'\n[train_dataset]\ntype = 'reverse_text'"
 * const { value } = yield* trainerOfOne(text, "orch.toml")
 * // { kind: "multirun", model: { type: "folder", path: "models/small" }, runs: { orch: … }, … }
 * ```
 */
export const trainerOfOne = Effect.fnUntraced(function* (
  text: string,
  file: string,
): Effect.fn.Return<TrainerOfOne, ConfigError> {
  const document = yield* readTomlText(text, file)
  const fail = (key: string, problem: string) => Effect.fail(ConfigError.at({ source: file }, key, problem))
  if (!isPrimeRl(document.value))
    return yield* fail(
      "",
      "expected prime-rl's orch.toml, with keys such as batch_size and [model]; an orch.toml with our keys is the config of one run, for the folder of a trainer",
    )
  const { run, model, width = usualWidth, routerReplay, places, notes } = yield* translated(document, file, runKeys)
  if (model === undefined)
    return yield* fail("model.name", "expected the folder of a model in Hugging Face's layout, found none")
  const theirs = isPlain(document.value["model"]) ? document.value["model"]["lora"] : undefined
  // An adapter is set by model.lora, or by a section [lora] of ours.
  const isAdapted = isPlain(theirs) || isPlain(run["lora"])
  const { rank, alpha } = isPlain(run["lora"]) ? run["lora"] : {}
  const isWhole = typeof width === "number" && Number.isSafeInteger(width) && width > 0
  const trainer = {
    rows: 1,
    width,
    lora: isAdapted ? given({ rank, alpha }) : null,
    ...given({ enable_router_replay: routerReplay }),
  }
  const settings = isWhole ? setIn(run, ["sampling", "max_tokens"], answerTokens(run, width)) : run
  return {
    value: { kind: "multirun", name, model: { type: "folder", path: model }, trainer, runs: { [name]: settings } },
    places: new Map([...places].map(([key, place]) => [placedIn(key), place])),
    notes,
  }
})

/** Returns the most tokens of an answer: what the file says, or, as for prime-rl, what the window can hold after a prompt. */
const answerTokens = ({ sampling }: Plain, width: number): unknown =>
  (isPlain(sampling) ? sampling["max_tokens"] : undefined) ?? Math.max(1, width - 1)

/** Returns where a key of the run is in the trainer's config. */
const placedIn = (key: string): string => {
  const isOfTrainer = ["model.path", "trainer.width", "trainer.enableRouterReplay"].includes(key)
  const path = isOfTrainer ? key.split(".") : ["runs", name, ...key.split(".")]
  return convertPath(path, camelCase).join(".")
}

/** Leaves out the keys that have no value. */
const given = (section: Plain): Plain =>
  Object.fromEntries(Object.entries(section).filter(([, value]) => value !== undefined))
