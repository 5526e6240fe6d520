/**
 * A small language model that really learns, and needs no key, no network and no time: a softmax policy over tokens whose
 * logits are sums of table entries. It looks at the last paragraph that it was told, as a whole and word by word, and at
 * the last tokens that it has said itself, and at nothing else. It calls no tools.
 *
 * @example
 * ```ts
 * const policy = Ngram.make({ answers: ["left", "right"] })
 * const { content, tokens } = yield* policy.lm.complete({ ...request, temperature: 1, traceTokens: true })
 * if (tokens !== null) policy.learn([Ngram.sample(tokens, content === "left" ? 1 : -1)])
 * ```
 */
import { Effect, Schema } from "effect"
import { ConfigError, decode } from "../../config/Config.ts"
import { positiveInt } from "../../config/fields.ts"
import { messageOf } from "../../config/text.ts"
import { exp, log } from "../../rng/Elementary.ts"
import { stream } from "../../rng/Rng.ts"
import type { Completion, LmRequest, TokenTrace } from "../Chat.ts"
import { bytes, end, firstWord, promptIds, roles, type Tokenizer, words } from "../ChatTokens.ts"
import type { LmService } from "../Lm.ts"

export interface NgramOptions {
  /** All that it can say is one of these. */
  readonly answers?: ReadonlyArray<string>
  /** All that it can say is made of these words, with a space between them. Without either it says any ASCII text. */
  readonly vocabulary?: ReadonlyArray<string>
  /** How many of its own last tokens it sees; 3 unless given. */
  readonly order?: number
}

/**
 * Something to learn from: a whole conversation as tokens, which of them were said by the model, and how good that was.
 * The samples of rollouts are such.
 */
export interface NgramSample {
  readonly inputIds: ReadonlyArray<number>
  /** 1 where the model said it. */
  readonly actionMask: ReadonlyArray<number>
  /** Makes what was said likelier, if it is above 0. */
  readonly weight: number
}

/** One call as a sample. */
export const sample = ({ promptIds, completionIds }: TokenTrace, weight: number): NgramSample => ({
  inputIds: [...promptIds, ...completionIds],
  actionMask: [...promptIds.map(() => 0), ...completionIds.map(() => 1)],
  weight,
})

const Table = Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Finite))

/** What a model is, and what it has learnt. */
export const NgramSnapshot = Schema.Struct({
  kind: Schema.Literal("effect-rl/ngram"),
  answers: Schema.NullOr(Schema.Array(Schema.String)),
  vocabulary: Schema.NullOr(Schema.Array(Schema.String)),
  order: positiveInt,
  /** Of what is seen, and of what may be said then: a logit's part. */
  table: Table,
})
export type NgramSnapshot = typeof NgramSnapshot.Type

/** Which tokens may follow what was said. */
type Grammar = (said: ReadonlyArray<number>) => ReadonlyArray<number>

/** One of some texts, token by token. */
const oneOf = (texts: ReadonlyArray<ReadonlyArray<number>>): Grammar => {
  const following = new Map<string, Set<number>>()
  for (const ids of texts) {
    for (let length = 0; length <= ids.length; length++) {
      const said = ids.slice(0, length).join()
      const next = following.get(said) ?? new Set()
      following.set(said, next.add(length === ids.length ? end : ids[length]))
    }
  }
  const sorted = new Map([...following].map(([said, next]) => [said, [...next].sort((a, b) => a - b)]))
  return (said) => sorted.get(said.join()) ?? [end]
}

/** Words, at least one: as they are in front, with a space in them behind. */
const sentences = (count: number): Grammar => {
  const first = Array.from({ length: count }, (_, index) => firstWord + index)
  const later = [end, ...first.map((id) => id + count)]
  return (said) => (said.length === 0 ? first : later)
}

/** Printable ASCII and new lines: what is said is the same text again, whatever it is. */
const ascii: Grammar = (() => {
  const ids = [end, ...bytes.encode("\n"), ...Array.from({ length: 95 }, (_, at) => bytes.encode(" ")[0] + at)]
  return () => ids
})()

/** What decides about the next token, as keys of the table. */
type Seen = { readonly told: ReadonlyArray<string>; readonly said: ReadonlyArray<number> }

/** A model, its tokens, and what it has learnt so far. */
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

  /** The same request has the same answer, until something was learnt in between. Temperature 0 is greedy. */
  readonly lm: LmService = { complete: (request) => Effect.sync(() => this.say(request)) }

  /**
   * A step up the gradient of `weight` × log-probability, sample by sample. With weights of 1 it imitates; with rewards or
   * advantages it is REINFORCE, if the samples were drawn at temperature 1. Gives the mean log-probability of what was
   * said, as it was before.
   */
  learn(samples: Iterable<NgramSample>, { learningRate = 1 }: { readonly learningRate?: number } = {}): number {
    let total = 0
    let count = 0
    for (const { inputIds, actionMask, weight } of samples) {
      const reader = new Reader(this.tokenizer)
      for (const [at, id] of inputIds.entries()) {
        if (actionMask[at] === 1) {
          const keys = this.keysOf(reader)
          const allowed = this.grammar(reader.said)
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

  /** Forgets what it knows, and knows this. */
  restore(table: NgramSnapshot["table"]): void {
    this.table.clear()
    for (const [key, row] of Object.entries(table)) {
      this.table.set(key, new Map(Object.entries(row).map(([id, logit]) => [Number(id), logit])))
    }
  }

  private say(request: LmRequest): Completion {
    const { temperature, topP, maxOutputTokens, stop, seed } = request
    const prompt = promptIds(this.tokenizer, request)
    const reader = new Reader(this.tokenizer)
    for (const id of prompt) reader.read(id)
    const random = stream(seed ?? 0, "ngram")
    const ids: Array<number> = []
    const logprobs: Array<number> = []
    let finishReason: Completion["finishReason"] = "length"
    while (ids.length < (maxOutputTokens ?? defaultLength)) {
      const allowed = this.grammar(reader.said)
      const chances = nucleus(this.chancesOf(this.keysOf(reader), allowed, temperature ?? 1), topP ?? 1)
      const chosen = random.categorical(chances)
      ids.push(allowed[chosen])
      logprobs.push(log(chances[chosen]))
      reader.read(allowed[chosen])
      if (allowed[chosen] === end) finishReason = "stop"
      else if (this.cutAtStop(ids, stop)) finishReason = "stop"
      else continue
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

  /** Takes away the tokens from where a stop sequence begins in them. */
  private cutAtStop(ids: Array<number>, stop: ReadonlyArray<string>): boolean {
    if (stop.length === 0) return false
    const text = this.tokenizer.decode(ids)
    const found = stop.map((one) => text.indexOf(one)).filter((at) => at >= 0)
    if (found.length === 0) return false
    const at = Math.min(...found)
    while (this.tokenizer.decode(ids).length > at) ids.pop()
    return true
  }

  private keysOf({ told, said }: Seen): ReadonlyArray<string> {
    const last = said.slice(-this.order).join()
    const keys = told.map((what) => `${what} | ${last}`)
    for (let length = 1; length <= Math.min(this.order, said.length); length++) {
      keys.push(`| ${said.slice(-length).join()}`)
    }
    return keys
  }

  private chancesOf(keys: ReadonlyArray<string>, allowed: ReadonlyArray<number>, temperature: number): Array<number> {
    const logits = allowed.map(() => 0)
    for (const key of keys) {
      const row = this.table.get(key)
      if (row === undefined) continue
      for (const [index, id] of allowed.entries()) logits[index] += row.get(id) ?? 0
    }
    const most = Math.max(...logits)
    const best = logits.indexOf(most)
    if (temperature === 0) return logits.map((_, index) => (index === best ? 1 : 0))
    const weights = logits.map((logit) => exp((logit - most) / temperature))
    const total = weights.reduce((sum, weight) => sum + weight, 0)
    return weights.map((weight) => weight / total)
  }
}

/** How long an answer may be where nobody says. */
const defaultLength = 256

/** The likeliest that together have so much of the chance, and they alone. */
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

/** Follows a conversation token by token: what was told last, and what the model has said since. */
class Reader {
  told: ReadonlyArray<string> = [""]
  said: Array<number> = []
  private readonly tokenizer: Tokenizer
  private listening = false
  private heard: Array<number> = []

  constructor(tokenizer: Tokenizer) {
    this.tokenizer = tokenizer
  }

  read(id: number): void {
    if (id === roles.assistant) {
      this.listening = false
      this.said = []
    } else if (id === roles.system || id === roles.user || id === roles.tool) {
      this.listening = true
      this.heard = []
    } else if (!this.listening) {
      if (id !== end) this.said.push(id)
    } else if (id !== end) this.heard.push(id)
    else this.told = toldBy(this.tokenizer.decode(this.heard))
  }
}

/** Its last paragraph as a whole, and the words in it. */
const toldBy = (text: string): ReadonlyArray<string> => {
  const last =
    text
      .trim()
      .split(/\n\s*\n/)
      .at(-1) ?? ""
  const parts = last.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  return [`"${last}"`, ...new Set(parts)]
}

/** A model that knows nothing yet. */
export const make = (options: NgramOptions = {}): Ngram => new Ngram(options)

/** A model as a file says it: the text of a snapshot as JSON. */
export const read = Effect.fnUntraced(function* (text: string, source: string): Effect.fn.Return<Ngram, ConfigError> {
  const failed = (error: unknown) => ConfigError.at({ source }, "", `expected the JSON of a model: ${messageOf(error)}`)
  const json = yield* Effect.try({ try: (): unknown => JSON.parse(text), catch: failed })
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
