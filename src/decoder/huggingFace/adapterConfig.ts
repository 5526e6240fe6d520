/** Converts peft's `adapter_config.json` to the settings of our adapters and back. */
import { Effect, Schema } from "effect"
import { ConfigError, display } from "../../base/config/Config.ts"
import { positive, positiveInt } from "../../base/config/fields.ts"
import { checkJson, parseJson } from "../../base/config/jsonFile.ts"
import { isPlain, type Plain } from "../../base/config/plain.ts"
import { messageOf } from "../../base/config/text.ts"
import { patternProblem } from "../../base/tokens/slowPatterns.ts"
import type { DecoderConfig } from "../networks/DecoderConfig.ts"
import {
  embeddingName,
  finalNormName,
  headName,
  type Projection,
  projectionName,
  projectionsOf,
} from "../networks/parameters.ts"
import { joinedModules } from "./weightLayout.ts"
import { highest } from "../../base/statistics/extremes.ts"

/** The settings of an adapter. */
export interface AdapterConfig {
  readonly rank: number
  readonly alpha: number
  /** Whether alpha is divided by the square root of the rank instead of the rank (rsLoRA). */
  readonly rankStabilised: boolean
  readonly targets: ReadonlyArray<Projection>
  /** The name or path of the base model; null if the file does not name one. */
  readonly base: string | null
}

/** Returns the scale of an adapter's output. */
export const scalingOf = ({ rank, alpha, rankStabilised }: AdapterConfig): number =>
  alpha / (rankStabilised ? Math.sqrt(rank) : rank)

const maybe = <S extends Schema.Codec<unknown, unknown>>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const AdapterJson = Schema.Struct({
  peft_type: Schema.Literal("LORA"),
  r: positiveInt,
  lora_alpha: positive,
  target_modules: Schema.Union([Schema.String, Schema.Array(Schema.String)]),
  use_rslora: maybe(Schema.Boolean),
  base_model_name_or_path: maybe(Schema.String),
})

/** Settings of features that we do not support, with the values that switch these off, besides null, false, [] and {}. */
const features: Readonly<Record<string, ReadonlyArray<unknown>>> = {
  use_dora: [],
  use_qalora: [],
  use_bdlora: [],
  lora_bias: [],
  fan_in_fan_out: [],
  modules_to_save: [],
  bias: ["none"],
  rank_pattern: [],
  alpha_pattern: [],
  layers_to_transform: [],
  layers_pattern: [],
  layer_replication: [],
  exclude_modules: [],
  target_parameters: [],
  trainable_token_indices: [],
  alora_invocation_tokens: [],
  // The ways to initialise A and B that are supported. Others also change the base model.
  init_lora_weights: [true, "gaussian"],
}

const isOff = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === false ||
  (Array.isArray(value) && value.length === 0) ||
  (isPlain(value) && Object.keys(value).length === 0)

/** Decodes the contents of `adapter_config.json` for a base model; `path` names the file in errors. */
export const decodeAdapterConfig = Effect.fnUntraced(function* (
  bytes: Uint8Array,
  path: string,
  decoder: DecoderConfig,
): Effect.fn.Return<AdapterConfig, ConfigError> {
  const parsed = yield* parseJson(bytes, path)
  const json = yield* checkJson(AdapterJson, parsed, path)
  for (const [key, allowed] of Object.entries(features)) {
    const value = isPlain(parsed) ? parsed[key] : undefined
    if (isOff(value) || allowed.includes(value)) continue
    // The matrices of an adapter have the same shapes for the transposed weights of GPT-2.
    if (key === "fan_in_fan_out" && decoder.architecture === "gpt2") continue
    const problem = `expected an adapter without this feature, which is not supported; found ${display(value)}`
    return yield* ConfigError.at({ source: path }, key, problem)
  }
  return {
    rank: json.r,
    alpha: json.lora_alpha,
    rankStabilised: json.use_rslora ?? false,
    targets: yield* targetsOf(json.target_modules, path, decoder),
    base: json.base_model_name_or_path ?? null,
  }
})

const lengthOf = ({ length }: string): number => length
const moduleOf = (parameter: string): string => parameter.replace(/\.weight$/, "")

/** Finds the projections that match `target_modules`: the ends of modules' names, a regular expression, or all. */
const targetsOf = Effect.fnUntraced(function* (
  target: string | ReadonlyArray<string>,
  path: string,
  decoder: DecoderConfig,
) {
  const { layers, tiedEmbeddings } = decoder
  const own = projectionsOf(decoder)
  const wrong = (problem: string) => ConfigError.at({ source: path }, "target_modules", problem)
  if (target === "all-linear") return own
  const others = [embeddingName, finalNormName, ...(tiedEmbeddings ? [] : [headName])].map(moduleOf)
  const longestName = highest([...others, ...own.map((one) => projectionName(layers, one))].map(lengthOf))
  const matches = yield* matcherOf(target, longestName, wrong)
  /** The modules of the files that join projections, by the names of the projections. */
  const moduleIn = new Map(
    joinedModules(decoder).flatMap(({ module, projections }) => projections.map((name) => [name, module])),
  )
  const other = others.find(matches)
  if (other !== undefined) return yield* wrong(`expected some of ${own.join(", ")}, found ${other}`)
  const found: Array<Projection> = []
  for (const projection of own) {
    const names = Array.from({ length: layers }, (_, layer) => projectionName(layer, projection))
    const matched = names.filter((name) => matches(name) || matches(moduleIn.get(name) ?? name))
    if (matched.length === names.length) found.push(projection)
    else if (matched.length > 0) {
      return yield* wrong(`expected ${projection} in all ${layers} layers or in none, found it in ${matched.length}`)
    }
  }
  if (found.length > 0) return found
  return yield* wrong(`expected some of ${own.join(", ")}, found ${display(target)}`)
})

/**
 * Returns the way in which peft compares modules' names: an expression must match the whole name, a list contains ends of
 * names.
 */
const matcherOf = (
  target: string | ReadonlyArray<string>,
  longestName: number,
  wrong: (problem: string) => ConfigError,
) =>
  typeof target === "string"
    ? Effect.try({
        try: () => {
          const source = `^(?:${target})$`
          const expression = new RegExp(source, "u")
          const problem = patternProblem(source, longestName)
          if (problem !== undefined) {
            throw new Error(
              `the regular expression is refused: ${problem}; list the ends of the modules' names instead`,
            )
          }
          return (name: string): boolean => expression.test(name)
        },
        catch: (error) => wrong(messageOf(error)),
      })
    : Effect.succeed((name: string): boolean => target.some((end) => name === end || name.endsWith(`.${end}`)))

/** Returns an `adapter_config.json` that peft can read. */
export const encodeAdapterConfig = ({ rank, alpha, rankStabilised, targets, base }: AdapterConfig): Plain => ({
  peft_type: "LORA",
  task_type: "CAUSAL_LM",
  base_model_name_or_path: base,
  revision: null,
  inference_mode: true,
  r: rank,
  lora_alpha: alpha,
  lora_dropout: 0,
  target_modules: targets,
  use_rslora: rankStabilised,
  use_dora: false,
  bias: "none",
  fan_in_fan_out: false,
  init_lora_weights: true,
  modules_to_save: null,
  rank_pattern: {},
  alpha_pattern: {},
  layers_to_transform: null,
  layers_pattern: null,
})
