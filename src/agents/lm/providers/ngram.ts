/**
 * Makes small language models that run in this process and can learn; they need no key and no network. A model is a
 * softmax policy over tokens whose logits are sums of table entries. Its features are the last paragraph of the prompt,
 * as a whole and word by word, and the last tokens of the model's own answer. It calls no tools. Configs name it
 * `builtin:choice:left,right`, `builtin:words:…`, `builtin:ngram` or `builtin:FILE.json`.
 *
 * @example
 * ```ts
 * const policy = Ngram.make({ answers: ["left", "right"] })
 * const { content, tokens } = yield* policy.lm.complete({ ...request, temperature: 1, traceTokens: true })
 * if (tokens !== null) policy.learn([Ngram.sample(tokens, content === "left" ? 1 : -1)])
 * ```
 */
import { Effect, Schema } from "effect"
import { ConfigError, decode } from "../../../base/config/Config.ts"
import { positiveInt } from "../../../base/config/fields.ts"
import { jsonValue, messageOf } from "../../../base/text/text.ts"
import { exp, log } from "../../../base/rng/Elementary.ts"
import { stream } from "../../../base/rng/Rng.ts"
import type { Completion, LmRequest, TokenTrace } from "../Chat.ts"
import { promptIds } from "../ChatTokens.ts"
import type { Tokenizer } from "../../../base/tokens/Tokenizer.ts"
import { bytes, end, firstWord, roles, words } from "../../../base/tokens/words.ts"
import type { LmService } from "../Lm.ts"
import { highest } from "../../../base/statistics/extremes.ts"

export interface NgramOptions {
  /** The answers of which the model chooses one. */
  readonly answers?: ReadonlyArray<string>
  /** The words from which the model's answers are made. Without `answers` and `vocabulary`, it generates any ASCII text. */
  readonly vocabulary?: ReadonlyArray<string>
  /** The number of the answer's last tokens that are used as features, 3 by default. */
  readonly order?: number
}

/**
 * A conversation to learn from: its tokens, a mask of the tokens that the model generated, and a weight. The samples of
 * rollouts have these fields.
 */
export interface NgramSample {
  readonly inputIds: ReadonlyArray<number>
  /** A number for each token: 1 if the model generated it, 0 if it belongs to the prompt. */
  readonly actionMask: ReadonlyArray<number>
  /** A positive weight makes the answer likelier, a negative one less likely. */
  readonly weight: number
}

/** Makes a sample from the tokens of one call. */
export const sample = ({ promptIds, completionIds }: TokenTrace, weight: number): NgramSample => ({
  inputIds: [...promptIds, ...completionIds],
  actionMask: [...promptIds.map(() => 0), ...completionIds.map(() => 1)],
  weight,
})

const Table = Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Finite))

/** The options of a model, and its table of weights, as a file stores them. */
export const NgramSnapshot = Schema.Struct({
  kind: Schema.Literal("effect-rl/ngram"),
  answers: Schema.NullOr(Schema.Array(Schema.String)),
  vocabulary: Schema.NullOr(Schema.Array(Schema.String)),
  order: positiveInt,
  /** The table of weights: the part that each feature adds to the logit of each token. */
  table: Table,
})
export type NgramSnapshot = typeof NgramSnapshot.Type

/** A function that returns the tokens that may come next, after the tokens of an unfinished answer. */
type Grammar = (generated: ReadonlyArray<number>) => ReadonlyArray<number>

/** Makes a grammar that allows only these texts, each as a list of token ids. */
const oneOf = (texts: ReadonlyArray<ReadonlyArray<number>>): Grammar => {
  const following = new Map<string, Set<number>>()
  for (const ids of texts) {
    for (let length = 0; length <= ids.length; length++) {
      const prefix = ids.slice(0, length).join()
      const next = following.get(prefix) ?? new Set()
      following.set(prefix, next.add(length === ids.length ? end : ids[length]))
    }
  }
  const sorted = new Map([...following].map(([prefix, next]) => [prefix, [...next].sort((a, b) => a - b)]))
  return (generated) => sorted.get(generated.join()) ?? [end]
}

/**
 * Makes a grammar that allows one or more of the `count` words of a vocabulary. All words but the first begin with a
 * space: their ids are `count` higher (see ChatTokens.ts).
 */
const sentences = (count: number): Grammar => {
  const first = Array.from({ length: count }, (_, index) => firstWord + index)
  const later = [end, ...first.map((id) => id + count)]
  return (generated) => (generated.length === 0 ? first : later)
}

/** Allows line feeds and the 95 printable characters of ASCII, so that any sequence of tokens is a valid text. */
const ascii: Grammar = (() => {
  const ids = [end, ...bytes.encode("\n"), ...Array.from({ length: 95 }, (_, at) => bytes.encode(" ")[0] + at)]
  return () => ids
})()

/** The input from which the next token is predicted: the features of the prompt, and the answer's tokens so far. */
type Context = { readonly prompt: ReadonlyArray<string>; readonly generated: ReadonlyArray<number> }

/** A model that answers requests (`lm`) and learns from samples (`learn`), which changes its table of weights. */
export class Ngram {
  readonly tokenizer: Tokenizer
  readonly order: number
  private readonly answers: ReadonlyArray<string> | null
  private readonly vocabulary: ReadonlyArray<string> | null
  private readonly grammar: Grammar
  private readonly table = new Map<string, Map<number, number>>()

  constructor({ answers, vocabulary, order = 3 }: NgramOptions) {
    this.answers = answers ?? null
    this.vocabulary = vocabulary ?? null
    this.order = order
    if (answers !== undefined) {
      if (answers.length === 0 || answers.includes("")) throw new RangeError("answers: expected texts to choose from")
      this.tokenizer = words([...new Set(answers.flatMap((answer) => answer.match(/\S+/g) ?? []))])
      this.grammar = oneOf(answers.map((answer) => this.tokenizer.encode(answer)))
    } else if (vocabulary !== undefined) {
      if (vocabulary.length === 0) throw new RangeError("vocabulary: expected words")
      this.tokenizer = words(vocabulary)
      this.grammar = sentences(vocabulary.length)
    } else {
      this.tokenizer = bytes
      this.grammar = ascii
    }
  }

  /** The model as a service. Equal requests have equal answers until the model learns. Temperature 0 is greedy. */
  readonly lm: LmService = { complete: (request) => Effect.sync(() => this.complete(request)) }

  /**
   * Makes a gradient step on `weight` × log-probability for each sample. Weights of 1 imitate the samples; rewards or
   * advantages as weights give REINFORCE, if the samples were drawn at temperature 1. Returns the mean log-probability of the
   * generated tokens before the step.
   */
  learn(samples: Iterable<NgramSample>, { learningRate = 1 }: { readonly learningRate?: number } = {}): number {
    let total = 0
    let count = 0
    for (const { inputIds, actionMask, weight } of samples) {
      const reader = new ConversationReader(this.tokenizer)
      for (const [at, id] of inputIds.entries()) {
        if (actionMask[at] === 1) {
          const keys = this.keysOf(reader)
          const allowed = this.grammar(reader.generated)
          const chances = this.chancesOf(keys, allowed, 1)
          const chosen = allowed.indexOf(id)
          if (chosen >= 0) {
            total += log(Math.max(chances[chosen], Number.MIN_VALUE))
            count++
            const rate = (learningRate * weight) / keys.length
            for (const key of keys) {
              const row = this.table.get(key) ?? new Map<number, number>()
              this.table.set(key, row)
              for (const [index, other] of allowed.entries()) {
                row.set(other, (row.get(other) ?? 0) + rate * ((index === chosen ? 1 : 0) - chances[index]))
              }
            }
          }
        }
        reader.read(id)
      }
    }
    return count === 0 ? 0 : total / count
  }

  snapshot(): NgramSnapshot {
    const { answers, vocabulary, order } = this
    const rows = [...this.table].map(([key, row]) => [key, Object.fromEntries(row)])
    return { kind: "effect-rl/ngram", answers, vocabulary, order, table: Object.fromEntries(rows) }
  }

  /** Replaces the table of weights by the table of a snapshot. */
  restore(table: NgramSnapshot["table"]): void {
    this.table.clear()
    for (const [key, row] of Object.entries(table)) {
      this.table.set(key, new Map(Object.entries(row).map(([id, logit]) => [Number(id), logit])))
    }
  }

  private complete(request: LmRequest): Completion {
    const { temperature, topP, maxOutputTokens, stop, seed } = request
    const prompt = promptIds(this.tokenizer, request)
    const reader = new ConversationReader(this.tokenizer)
    for (const id of prompt) reader.read(id)
    const random = stream(seed ?? 0, "ngram")
    const ids: Array<number> = []
    const logprobs: Array<number> = []
    let finishReason: Completion["finishReason"] = "length"
    while (ids.length < (maxOutputTokens ?? defaultLength)) {
      const allowed = this.grammar(reader.generated)
      const chances = nucleus(this.chancesOf(this.keysOf(reader), allowed, temperature ?? 1), topP ?? 1)
      const chosen = random.categorical(chances)
      ids.push(allowed[chosen])
      logprobs.push(log(chances[chosen]))
      reader.read(allowed[chosen])
      if (allowed[chosen] !== end && !this.cutAtStop(ids, stop)) continue
      finishReason = "stop"
      break
    }
    const content = this.tokenizer.decode(ids)
    const tokens = { promptIds: prompt, completionIds: ids, logprobs: logprobs.slice(0, ids.length) }
    return {
      content,
      toolCalls: [],
      finishReason,
      usage: { inputTokens: prompt.length, outputTokens: ids.length, reasoningTokens: 0 },
      tokens: request.traceTokens ? tokens : null,
      model: request.model,
      attempts: 1,
    }
  }

  /** Cuts `ids` at the first stop sequence in their text, which is removed, too. Returns whether there was one. */
  private cutAtStop(ids: Array<number>, stop: ReadonlyArray<string>): boolean {
    if (stop.length === 0) return false
    const text = this.tokenizer.decode(ids)
    const starts = stop.map((sequence) => text.indexOf(sequence)).filter((at) => at >= 0)
    if (starts.length === 0) return false
    const at = Math.min(...starts)
    while (this.tokenizer.decode(ids).length > at) ids.pop()
    return true
  }

  /** Returns the keys of the table rows whose sum is the logits of the next token. */
  private keysOf({ prompt, generated }: Context): ReadonlyArray<string> {
    const last = generated.slice(-this.order).join()
    const keys = prompt.map((feature) => `${feature} | ${last}`)
    for (let length = 1; length <= Math.min(this.order, generated.length); length++) {
      keys.push(`| ${generated.slice(-length).join()}`)
    }
    return keys
  }

  /** Returns the probability of each allowed token; `keys` are the keys of the table rows to add up. */
  private chancesOf(keys: ReadonlyArray<string>, allowed: ReadonlyArray<number>, temperature: number): Array<number> {
    const logits = allowed.map(() => 0)
    for (const key of keys) {
      const row = this.table.get(key)
      if (row === undefined) continue
      for (const [index, id] of allowed.entries()) logits[index] += row.get(id) ?? 0
    }
    const most = highest(logits)
    const best = logits.indexOf(most)
    if (temperature === 0) return logits.map((_, index) => (index === best ? 1 : 0))
    const weights = logits.map((logit) => exp((logit - most) / temperature))
    const total = weights.reduce((sum, weight) => sum + weight, 0)
    return weights.map((weight) => weight / total)
  }
}

/** The largest number of tokens in an answer, for requests without a limit. */
const defaultLength = 256

/** Keeps only the likeliest tokens that together have at least the probability `topP` (nucleus sampling). */
const nucleus = (chances: Array<number>, topP: number): Array<number> => {
  if (topP >= 1) return chances
  const order = chances.map((_, index) => index).sort((a, b) => chances[b] - chances[a] || a - b)
  const kept = chances.map(() => 0)
  let total = 0
  for (const index of order) {
    kept[index] = chances[index]
    total += chances[index]
    if (total >= topP) break
  }
  return kept.map((chance) => chance / total)
}

/** Reads a conversation token by token, and keeps the features of the last prompt message and the answer after it. */
class ConversationReader {
  prompt: ReadonlyArray<string> = [""]
  generated: Array<number> = []
  private readonly tokenizer: Tokenizer
  private inPrompt = false
  private message: Array<number> = []

  constructor(tokenizer: Tokenizer) {
    this.tokenizer = tokenizer
  }

  read(id: number): void {
    if (id === roles.assistant) {
      this.inPrompt = false
      this.generated = []
    } else if (id === roles.system || id === roles.user || id === roles.tool) {
      this.inPrompt = true
      this.message = []
    } else if (!this.inPrompt) {
      if (id !== end) this.generated.push(id)
    } else if (id !== end) this.message.push(id)
    else this.prompt = featuresOf(this.tokenizer.decode(this.message))
  }
}

/** Returns the features of a text: its last paragraph as a whole, and each word in that paragraph. */
const featuresOf = (text: string): ReadonlyArray<string> => {
  const paragraphs = text.trim().split(/\n\s*\n/)
  const last = paragraphs[paragraphs.length - 1]
  const parts = last.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  return [`"${last}"`, ...new Set(parts)]
}

/** Makes a model that has not learnt anything yet. */
export const make = (options: NgramOptions = {}): Ngram => new Ngram(options)

/** Makes a model from the JSON text of a snapshot; `source` is the name of that text in error messages. */
export const read = Effect.fnUntraced(function* (text: string, source: string): Effect.fn.Return<Ngram, ConfigError> {
  const failed = (error: unknown) => ConfigError.at({ source }, "", `not the JSON of a model: ${messageOf(error)}`)
  const json = yield* Effect.try({ try: () => jsonValue(text), catch: failed })
  const { answers, vocabulary, order, table } = yield* decode(NgramSnapshot, json, { source })
  return yield* Effect.try({
    try: () => {
      const model = make({
        order,
        ...(answers === null ? {} : { answers }),
        ...(vocabulary === null ? {} : { vocabulary }),
      })
      model.restore(table)
      return model
    },
    catch: failed,
  })
})
