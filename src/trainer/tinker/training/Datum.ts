/**
 * Defines one example of a request to train: tokens, and for each of them the token that should follow, with the columns of
 * the loss. The target need not be the next token of the example.
 */
import { columnDefaults, type ColumnName, columnNames, type LossName, lossNames, defaultBeta } from "./lossFunctions.ts"

export interface Datum {
  readonly tokens: Int32Array
  readonly targets: Int32Array
  readonly columns: Readonly<Record<ColumnName, Float32Array>>
}

/** A checked request to compute a loss. */
export interface LossRequest {
  readonly data: ReadonlyArray<Datum>
  readonly loss: LossName
  readonly beta: number
}

/** A tensor of a request, before it is checked. */
export interface RequestTensor {
  readonly data: ArrayLike<number | bigint>
  readonly shape: ReadonlyArray<number> | null
  readonly isSparse: boolean
}

/** A request to compute a loss, before it is checked. */
export interface RawLossRequest {
  readonly loss: string
  readonly lossConfig: ReadonlyMap<string, number>
  readonly data: ReadonlyArray<RawDatum>
}

export interface RawDatum {
  /** The tokens of the input; a text if a chunk is not text, such as an image. */
  readonly tokens: ArrayLike<number> | { readonly unsupported: string }
  readonly inputs: ReadonlyMap<string, RequestTensor>
}

interface DatumLimits {
  readonly vocabSize: number
  /** The most tokens of an example. */
  readonly maxLength: number
  /** The most tokens of all examples of a request. */
  readonly maxTokens: number
}

/** Reports that a key of a request has a wrong value. */
export class DatumProblem extends Error {
  readonly key: string
  constructor(key: string, problem: string) {
    super(`${key}: ${problem}`)
    this.key = key
  }
}

/** Maps the columns to their keys in `loss_fn_inputs`. */
const keys: Readonly<Record<ColumnName, string>> = {
  weights: "weights",
  logprobs: "logprobs",
  advantages: "advantages",
  clipLow: "clip_low_threshold",
  clipHigh: "clip_high_threshold",
}

/** Returns the columns that a loss needs, and those that it may have. */
const columnsOf = (
  loss: LossName,
): { readonly needed: ReadonlyArray<ColumnName>; readonly allowed: ReadonlyArray<ColumnName> } => {
  const { weights, clipLow, clipHigh } = { weights: "weights", clipLow: "clipLow", clipHigh: "clipHigh" } as const
  if (loss === "cross_entropy") return { needed: [], allowed: [weights] }
  const needed: ReadonlyArray<ColumnName> = ["logprobs", "advantages"]
  const clips = loss === "ppo" || loss === "cispo" ? [clipLow, clipHigh] : []
  return { needed, allowed: [...needed, weights, ...clips] }
}

const isLossName = (name: string): name is LossName => lossNames.some((one) => one === name)

/** Checks a request. Throws a `DatumProblem` that names the first wrong key. */
export const checkLossRequest = (raw: RawLossRequest, limits: DatumLimits): LossRequest => {
  const { loss } = raw
  if (!isLossName(loss)) throw new DatumProblem("loss_fn", `expected one of ${lossNames.join(", ")}, found "${loss}"`)
  const { defaults, beta } = lossConfigOf(loss, raw.lossConfig)
  if (raw.data.length === 0) throw new DatumProblem("data", "expected at least one datum, found none")
  let total = 0
  const data = raw.data.map((datum, at) => {
    const checked = checkDatum(datum, `data[${at}]`, { loss, defaults, limits })
    total += checked.tokens.length
    if (total > limits.maxTokens)
      throw new DatumProblem("data", `expected at most ${limits.maxTokens} tokens in a request; send fewer at a time`)
    return checked
  })
  return { data, loss, beta }
}

/** The settings of a loss that hold for all tokens. */
const lossConfigOf = (loss: LossName, config: ReadonlyMap<string, number>) => {
  const allowed = new Set(columnsOf(loss).allowed.flatMap((name) => (name.startsWith("clip") ? [keys[name]] : [])))
  if (loss === "dro") allowed.add("beta")
  for (const [key, value] of config) {
    const place = `loss_fn_config.${key}`
    if (!allowed.has(key))
      throw new DatumProblem(place, `${loss} has no such setting; expected ${[...allowed].join(", ") || "none"}`)
    if (!Number.isFinite(value) || value < 0)
      throw new DatumProblem(place, `expected a finite number from 0 on, found ${value}`)
  }
  const defaults = {
    ...columnDefaults,
    clipLow: config.get(keys.clipLow) ?? columnDefaults.clipLow,
    clipHigh: config.get(keys.clipHigh) ?? columnDefaults.clipHigh,
  }
  return { defaults, beta: config.get("beta") ?? defaultBeta }
}

interface DatumRules {
  readonly loss: LossName
  readonly defaults: Readonly<Record<ColumnName, number>>
  readonly limits: DatumLimits
}

const checkDatum = ({ tokens, inputs }: RawDatum, place: string, { loss, defaults, limits }: DatumRules): Datum => {
  if ("unsupported" in tokens)
    throw new DatumProblem(
      `${place}.model_input`,
      `expected text, found ${tokens.unsupported}, which this server lacks`,
    )
  const at = (key: string): string => `${place}.loss_fn_inputs.${key}`
  const { needed, allowed } = columnsOf(loss)
  const known = ["target_tokens", ...allowed.map((name) => keys[name])]
  for (const key of inputs.keys())
    if (!known.includes(key)) throw new DatumProblem(at(key), `${loss} takes ${known.join(", ")}`)
  const { length } = tokens
  if (length === 0 || length > limits.maxLength)
    throw new DatumProblem(`${place}.model_input`, `expected 1 to ${limits.maxLength} tokens, found ${length}`)
  const input = checkTokens(tokens, `${place}.model_input`, limits)
  const targets = inputs.get("target_tokens")
  if (targets === undefined) throw new DatumProblem(at("target_tokens"), "it is missing")
  const columns = Object.fromEntries(
    columnNames.map((name) => {
      const tensor = inputs.get(keys[name])
      if (tensor === undefined && needed.includes(name)) throw new DatumProblem(at(keys[name]), "it is missing")
      const values =
        tensor === undefined ? new Float32Array(length).fill(defaults[name]) : numbersIn(tensor, at(keys[name]), length)
      return [name, values]
    }),
  )
  const { weights, logprobs, advantages, clipLow, clipHigh } = columns
  return {
    tokens: input,
    targets: checkTokens(dataIn(targets, at("target_tokens"), length), at("target_tokens"), limits),
    columns: { weights, logprobs, advantages, clipLow, clipHigh },
  }
}

/** Returns the numbers of a tensor with one number for each token. */
const dataIn = ({ data, shape, isSparse }: RequestTensor, place: string, length: number) => {
  if (isSparse || (shape !== null && shape.length > 1))
    throw new DatumProblem(
      place,
      "expected one number for each token; this server does not take matrices or sparse tensors",
    )
  if (data.length !== length || (shape !== null && shape[0] !== length))
    throw new DatumProblem(place, `expected ${length} numbers, one for each token, found ${shape?.[0] ?? data.length}`)
  return data
}

const numbersIn = (tensor: RequestTensor, place: string, length: number): Float32Array => {
  const data = dataIn(tensor, place, length)
  return Float32Array.from({ length }, (_, at) => {
    const value = Math.fround(Number(data[at]))
    if (!Number.isFinite(value)) throw new DatumProblem(`${place}[${at}]`, `expected a finite number, found ${value}`)
    return value
  })
}

/** Checks that numbers are ids of tokens. */
export const checkTokens = (
  ids: ArrayLike<number | bigint>,
  place: string,
  { vocabSize }: Pick<DatumLimits, "vocabSize">,
): Int32Array =>
  Int32Array.from({ length: ids.length }, (_, at) => {
    const id = Number(ids[at])
    if (Number.isInteger(id) && id >= 0 && id < vocabSize) return id
    throw new DatumProblem(`${place}[${at}]`, `expected a token id from 0 to ${vocabSize - 1}, found ${id}`)
  })
