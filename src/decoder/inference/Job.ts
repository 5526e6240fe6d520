/** Holds a request of the engine: its tokens, their text, and the conditions that end it. */
import { Exit } from "effect"
import type { Stream } from "../../base/rng/Rng.ts"
import { stream } from "../../base/rng/Rng.ts"
import { draw, score, type TokenDraw } from "./draw.ts"
import type {
  Generated,
  GeneratedToken,
  GenerateEvent,
  PromptToken,
  TokenCandidate,
  WeightsUsed,
} from "./EngineService.ts"
import { EngineError, engineError } from "./EngineError.ts"
import { type LogitChanges, logitChangesOf } from "./logitChanges.ts"
import type { FormatCursor } from "../constrained/AnswerFormats.ts"
import type { Vocabulary } from "../constrained/TokenMasks.ts"
import type { Sequence } from "./PagedCache.ts"
import type { Sampling } from "./Sampling.ts"
import type { HiddenPool } from "./HiddenPool.ts"
import type { StepModel } from "./StepModel.ts"
import { makeStopSearch, type StopSearch } from "./stopStrings.ts"
import type { Version } from "./Versions.ts"

/** Decodes tokens to text one by one. `Tokenizer` has these methods; answers in JSON need all of them. */
export interface Detokenizer extends Partial<Vocabulary> {
  readonly decoder: () => { readonly push: (id: number) => string; readonly end: () => string }
}

interface JobOptions {
  /** The number of this request, in the order of arrival. */
  readonly order: number
  readonly model: string
  readonly promptIds: ArrayLike<number>
  readonly sampling: Sampling
  readonly seed: number
  readonly eosIds: ReadonlyArray<number>
  /** The largest number of tokens of the prompt and the answer together. */
  readonly maxLength: number
  readonly detokenizer: Detokenizer
  /** The format of the answer; undefined if it can be any text. */
  readonly format?: FormatCursor | undefined
  /** Collects the hidden states of the prompt, if the request is for an embedding instead of an answer. */
  readonly pool?: HiddenPool | undefined
  /** Returns the experts of the first tokens of a row of the cache, if the model keeps them. */
  readonly routedExperts?: StepModel["routedExperts"] | undefined
  readonly onEvent?: ((event: GenerateEvent) => void) | undefined
  readonly onEnd: (exit: Exit.Exit<Generated, EngineError>) => void
}

export class EngineJob {
  readonly order: number
  readonly model: string
  readonly sampling: Sampling
  readonly maxLength: number
  readonly onEvent: ((event: GenerateEvent) => void) | undefined
  readonly onEnd: (exit: Exit.Exit<Generated, EngineError>) => void
  readonly promptLength: number
  /**
   * The number of prompt tokens that are read in pages. The last one is not, because it gives the logits of the first
   * generated token. If each token of the prompt needs its log-probability, none is. For an embedding, all are.
   */
  readonly readLength: number
  readonly pool: HiddenPool | undefined
  /** The tokens of the prompt and the answer. */
  readonly ids: Int32Array
  /** The number of tokens that were read or generated, with those of the prompt that are read in pages. */
  known: number
  state: "waiting" | "running" | "ended" = "waiting"
  /** The version of the weights for this request; null until the request begins. */
  version: Version | null = null
  /** The request's pages of the cache, while its prompt is read. */
  sequence: Sequence | null = null
  /** The request's row of the cache while it generates; before that, −1. */
  row = -1
  /** The number of the request's tokens in the current step and, while its prompt is read, its row in the step. */
  count = 0
  readingRow = 0

  private readonly routedExperts: StepModel["routedExperts"] | undefined
  private readonly random: Stream
  /** The tokens that end the answer. */
  private readonly endIds: ReadonlyArray<number>
  private readonly decoder: ReturnType<Detokenizer["decoder"]>
  private readonly stops: StopSearch
  private readonly generated: Array<GeneratedToken> = []
  /** The changes of the logits; undefined if the request has none. */
  private readonly changes: LogitChanges | undefined
  private readonly format: FormatCursor | undefined
  /** The log-probabilities of the prompt so far; null if they are not needed. */
  private readonly promptLogprobs: Array<PromptToken | null> | null
  private text = ""

  /** The number of tokens that are in the cache while the request generates: all except the newest. */
  get cached(): number {
    return this.known - 1
  }

  constructor(options: JobOptions) {
    this.order = options.order
    this.model = options.model
    this.sampling = options.sampling
    this.maxLength = options.maxLength
    this.onEvent = options.onEvent
    this.onEnd = options.onEnd
    this.ids = new Int32Array(options.maxLength)
    for (let at = 0; at < options.promptIds.length; at++) this.ids[at] = options.promptIds[at]
    this.promptLength = options.promptIds.length
    this.promptLogprobs = options.sampling.promptLogprobs === null ? null : [null]
    this.pool = options.pool
    this.routedExperts = options.routedExperts
    this.readLength = readLengthOf(options)
    this.known = this.readLength + 1
    this.format = options.format
    this.changes = logitChangesOf(options.sampling, options.promptIds)
    this.random = stream(options.seed, "token")
    const { stopTokenIds, ignoreEos } = options.sampling
    this.endIds = ignoreEos ? stopTokenIds : [...stopTokenIds, ...options.eosIds]
    this.decoder = options.detokenizer.decoder()
    this.stops = makeStopSearch(options.sampling.stop)
  }

  /** Whether the next step generates a token, instead of computing the log-probability of a token of the prompt. */
  get isGenerating(): boolean {
    return this.known >= this.promptLength && this.known < this.maxLength
  }

  /**
   * Draws the next token from the logits that begin at `offset`. Returns the answer if it is complete; otherwise undefined.
   */
  next(drawing: TokenDraw, logits: Float32Array, offset: number): Generated | EngineError | undefined {
    const { sampling, generated, version, promptLogprobs } = this
    if (version === null) return undefined
    if (!this.isGenerating) return this.scorePrompt(drawing, logits, offset, version.used)
    const id = this.choose(drawing, logits, offset)
    if (id instanceof EngineError) return id
    if (id < 0) return this.notFinite(`token ${generated.length + 1} of the answer`)
    const token = { id, logprob: drawing.logprob, top: listed(drawing, sampling.topLogprobs) }
    this.ids[this.known++] = id
    const withPrompt = promptLogprobs === null || generated.length > 0 ? {} : { promptLogprobs }
    generated.push(token)

    const isEnd = this.endIds.includes(id)
    if (!isEnd) this.format?.accept(id)
    const text = isEnd ? "" : this.stops.push(this.decoder.push(id))
    this.text += text
    this.onEvent?.({ _tag: "Token", token, text, weights: version.used, ...withPrompt })
    if (isEnd) return this.finish(version.used, "stop", id)
    if (this.stops.found() !== null) return this.finish(version.used, "stop", null)
    if (this.isComplete) return this.finish(version.used, "stop", null)
    return this.known === this.maxLength ? this.finish(version.used, "length", null) : undefined
  }

  /** Whether the answer is complete in its format. If the model has no token to end it, it ends as soon as it can. */
  private get isComplete(): boolean {
    const { format, endIds } = this
    return format !== undefined && (format.isComplete || (format.canEnd && endIds.length === 0))
  }

  /** Draws a token. Returns its id, −1 if the logits are not finite, or the error of a format that cannot be continued. */
  private choose(drawing: TokenDraw, logits: Float32Array, offset: number): number | EngineError {
    const { sampling, changes, format } = this
    const uniform = sampling.temperature === 0 ? 0 : this.random.childUniformDouble(this.generated.length)
    if (changes === undefined && format === undefined) return draw(drawing, logits, offset, sampling, uniform)
    const { changed, vocabSize } = drawing
    changed.set(logits.subarray(offset, offset + vocabSize))
    changes?.apply(changed)
    try {
      format?.exclude(changed, this.endIds)
    } catch (error) {
      if (error instanceof EngineError) return error
      throw error
    }
    const id = draw(drawing, changed, 0, { ...sampling, topLogprobs: 0 }, uniform)
    if (id < 0) return id
    changes?.add(id)
    // Log-probabilities are those of the model, without the changes.
    return score(drawing, logits, offset, id, sampling) ? id : -1
  }

  /** Computes the log-probability of the prompt's next token. Returns the answer if no tokens are to be generated. */
  private scorePrompt(
    drawing: TokenDraw,
    logits: Float32Array,
    offset: number,
    weights: WeightsUsed,
  ): Generated | EngineError | undefined {
    const topLogprobs = this.sampling.promptLogprobs ?? 0
    if (this.known < this.promptLength) {
      const id = this.ids[this.known]
      if (!score(drawing, logits, offset, id, { temperature: 1, topLogprobs }))
        return this.notFinite(`token ${this.known + 1} of the prompt`)
      const { logprob, rank } = drawing
      this.promptLogprobs?.push({ id, logprob, rank, top: listed(drawing, topLogprobs) })
      this.known++
    }
    return this.known === this.maxLength ? this.finish(weights, "length", null) : undefined
  }

  /** Ends a request for an embedding, whose pool has all hidden states. */
  endPool(): Exit.Exit<Generated, EngineError> {
    const { pool, version } = this
    if (version === null || pool?.isFinite !== true) return Exit.fail(this.notFinite("the embedding", "hidden states"))
    return Exit.succeed(this.finish(version.used, "length", null))
  }

  private notFinite(place: string, numbers = "logits"): EngineError {
    const problem = `${place}: expected finite ${numbers}, found NaN or infinite ones; check the weights`
    return engineError(this.model, "notFinite", problem)
  }

  private finish(weights: WeightsUsed, finishReason: Generated["finishReason"], endId: number | null): Generated {
    const { stops } = this
    const decoded = stops.push(this.decoder.end())
    const rest = decoded + (stops.found() === null ? stops.end() : "")
    this.text += rest
    const stop = stops.found()
    const experts = this.row === -1 ? undefined : this.routedExperts?.(this.row, this.cached)
    const answer: Generated = {
      tokens: this.generated,
      text: this.text,
      finishReason: stop === null ? finishReason : "stop",
      stopReason: endId ?? stop,
      weights,
      ...(this.promptLogprobs === null ? {} : { promptLogprobs: this.promptLogprobs }),
      ...(experts === undefined ? {} : { routedExperts: experts }),
    }
    this.onEvent?.({ _tag: "Finished", text: rest, generated: answer })
    return answer
  }
}

const readLengthOf = ({ pool, promptIds, sampling }: JobOptions): number => {
  if (pool !== undefined) return promptIds.length
  return sampling.promptLogprobs === null ? promptIds.length - 1 : 0
}

/** Returns the likeliest tokens of the last draw. */
const listed = (drawing: TokenDraw, count: number): ReadonlyArray<TokenCandidate> =>
  Array.from({ length: Math.min(count, drawing.vocabSize) }, (_, rank) => ({
    id: drawing.topIds[rank],
    logprob: drawing.topLogprobs[rank],
  }))
