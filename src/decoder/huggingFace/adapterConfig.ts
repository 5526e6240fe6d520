/** Converts peft's `adapter_config.json` to the settings of our adapters and back. */
import { Effect, Schema } from "effect"
import { ConfigError, display } from "../../base/config/Config.ts"
import { bounded, positive } from "../../base/config/fields.ts"
import { checkJson, parseJson } from "../../base/config/jsonFile.ts"
import { isPlain, type Plain } from "../../base/config/plain.ts"
import { messageOf } from "../../base/text/text.ts"
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
  /** Whether each row of a changed matrix gets its length from a vector (DoRA). Default: false. */
  readonly dora?: boolean | undefined
  /** The ends of the names of modules that the adapter replaces as a whole. Default: none. */
  readonly modulesToSave?: ReadonlyArray<string> | undefined
}

/** The settings of an adapter's file, in which projections may have ranks and alphas of their own. */
export interface AdapterFileConfig extends AdapterConfig {
  /** Returns the rank of a projection, and the scale of its output. */
  readonly sizesOf: (projection: string) => { readonly rank: number; readonly scaling: number }
}

/** Returns the scale of an adapter's output. */
export const scalingOf = ({
  rank,
  alpha,
  rankStabilised,
}: Pick<AdapterConfig, "rank" | "alpha" | "rankStabilised">): number =>
  alpha / (rankStabilised ? Math.sqrt(rank) : rank)

const maybe = <S extends Schema.Codec<unknown, unknown>>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const rankField = bounded("adapterRank")

const AdapterJson = Schema.Struct({
  peft_type: Schema.Literal("LORA"),
  r: rankField,
  lora_alpha: positive,
  target_modules: Schema.Union([Schema.String, Schema.Array(Schema.String)]),
  use_rslora: maybe(Schema.Boolean),
  use_dora: maybe(Schema.Boolean),
  modules_to_save: maybe(Schema.Array(Schema.NonEmptyString)),
  rank_pattern: maybe(Schema.Record(Schema.String, rankField)),
  alpha_pattern: maybe(Schema.Record(Schema.String, positive)),
  base_model_name_or_path: maybe(Schema.String),
})

/** Settings of features that we do not support, with the values that switch these off, besides null, false, [] and {}. */
const features: Readonly<Record<string, ReadonlyArray<unknown>>> = {
  use_qalora: [],
  use_bdlora: [],
  lora_bias: [],
  fan_in_fan_out: [],
  bias: ["none"],
  layers_to_transform: [],
  layers_pattern: [],
  layer_replication: [],
  exclude_modules: [],
  target_parameters: [],
  trainable_token_indices: [],
  ensure_weight_tying: [],
  arrow_config: [],
  kasa_config: [],
  monteclora_config: [],
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

/** The largest number of modules that an adapter replaces, because each is compared with all tensors of the model. */
const mostModules = 1024

/** Decodes the contents of `adapter_config.json` for a base model; `path` names the file in errors. */
export const decodeAdapterConfig = Effect.fnUntraced(function* (
  bytes: Uint8Array,
  path: string,
  decoder: DecoderConfig,
): Effect.fn.Return<AdapterFileConfig, ConfigError> {
  const parsed = yield* parseJson(bytes, path)
  const json = yield* checkJson(AdapterJson, parsed, path)
  const replaced = [...new Set(json.modules_to_save ?? [])]
  if (replaced.length > mostModules) {
    const problem = `expected at most ${mostModules} names of modules, found ${replaced.length}`
    return yield* ConfigError.at({ source: path }, "modules_to_save", problem)
  }
  for (const [key, allowed] of Object.entries(features)) {
    const value = isPlain(parsed) ? parsed[key] : undefined
    if (isOff(value) || allowed.includes(value)) continue
    // The matrices of an adapter have the same shapes for the transposed weights of GPT-2.
    if (key === "fan_in_fan_out" && decoder.architecture === "gpt2") continue
    const problem = `expected an adapter without this feature, which is not supported; found ${display(value)}`
    return yield* ConfigError.at({ source: path }, key, problem)
  }
  const config = {
    rank: json.r,
    alpha: json.lora_alpha,
    rankStabilised: json.use_rslora ?? false,
    targets: yield* targetsOf(json.target_modules, path, decoder),
    base: json.base_model_name_or_path ?? null,
    ...(json.use_dora === true ? { dora: true } : {}),
    ...(replaced.length > 0 ? { modulesToSave: replaced } : {}),
  }
  const rankOf = yield* patternOf(json.rank_pattern ?? {}, { path, key: "rank_pattern", decoder })
  const alphaOf = yield* patternOf(json.alpha_pattern ?? {}, { path, key: "alpha_pattern", decoder })
  const sizesOf = (projection: string) => {
    const rank = rankOf(projection) ?? config.rank
    const alpha = alphaOf(projection) ?? config.alpha
    return { rank, scaling: scalingOf({ ...config, rank, alpha }) }
  }
  const names = config.targets.flatMap((target) =>
    Array.from({ length: decoder.layers }, (_, layer) => projectionName(layer, target)),
  )
  const rank = highest(names.map((name) => sizesOf(name).rank))
  // With one rank and alpha for all, these are those of the file.
  const isUniform = names.every((name) => rankOf(name) === undefined && alphaOf(name) === undefined)
  if (isUniform) return { ...config, sizesOf }
  return { ...config, rank, alpha: scalingOf(config) * rank, rankStabilised: false, sizesOf }
})

/** The largest number of expressions in a pattern: enough for one of each projection of a large model. */
const mostExpressions = 1024

/** The largest number of expressions that are more than a name, each of which may take a while for each projection. */
const mostGeneral = 64
const isNameOnly = (expression: string): boolean => /^\^?(?:[\w-]|\\?\.)*\$?$/.test(expression)

/** Makes the function that finds the number of a projection in `rank_pattern` or `alpha_pattern`: that of its first match. */
const patternOf = Effect.fnUntraced(function* (
  pattern: Readonly<Record<string, number>>,
  { path, key, decoder }: { readonly path: string; readonly key: string; readonly decoder: DecoderConfig },
) {
  const entries = Object.entries(pattern)
  const wrong = (problem: string) => ConfigError.at({ source: path }, key, problem)
  if (entries.length > mostExpressions)
    return yield* wrong(`expected at most ${mostExpressions} expressions, found ${entries.length}`)
  const general = entries.filter(([expression]) => !isNameOnly(expression)).length
  if (general > mostGeneral)
    return yield* wrong(
      `expected at most ${mostGeneral} expressions that are more than a module's name, found ${general}`,
    )
  const modules = moduleNames(decoder)
  const names = projectionsOf(decoder).map((one) => projectionName(decoder.layers, one))
  const longestName = highest([...names, ...modules.values()].map(lengthOf))
  const matchers = yield* Effect.forEach(entries, ([expression, value]) =>
    Effect.map(matcherOf(expression, longestName, wrong), (matches) => ({ matches, value })),
  )
  /** The numbers of the projections so far, because thousands of expressions take a while. */
  const known = new Map<string, number | undefined>()
  return (projection: string): number | undefined => {
    if (known.has(projection)) return known.get(projection)
    // An expression must match the end of the name, from its beginning or after a dot.
    const ends = [...new Set([projection, modules.get(projection) ?? projection].flatMap(endsOf))]
    const value = matchers.find(({ matches }) => ends.some(matches))?.value
    known.set(projection, value)
    return value
  }
})

/** Returns a module's name and its ends after each dot. */
const endsOf = (name: string): ReadonlyArray<string> => {
  const parts = name.split(".")
  return parts.map((_, first) => parts.slice(first).join("."))
}

/** Returns the modules of the files that join projections, by the names of the projections. */
const moduleNames = (decoder: DecoderConfig): ReadonlyMap<string, string> =>
  new Map(joinedModules(decoder).flatMap(({ module, projections }) => projections.map((name) => [name, module])))

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
  const moduleIn = moduleNames(decoder)
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
    : Effect.sync(() => {
        const listed = new Set(target)
        return (name: string): boolean => endsOf(name).some((end) => listed.has(end))
      })

/** Returns an `adapter_config.json` that peft can read. */
export const encodeAdapterConfig = ({
  rank,
  alpha,
  rankStabilised,
  targets,
  base,
  dora = false,
  modulesToSave = [],
}: AdapterConfig): Plain => ({
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
  use_dora: dora,
  bias: "none",
  fan_in_fan_out: false,
  init_lora_weights: true,
  modules_to_save: modulesToSave.length === 0 ? null : modulesToSave,
  rank_pattern: {},
  alpha_pattern: {},
  layers_to_transform: null,
  layers_pattern: null,
})
