/** Holds a request of the engine: its tokens, their text, and the conditions that end it. */
import type { Exit } from "effect"
import type { Stream } from "../../base/rng/Rng.ts"
import { stream } from "../../base/rng/Rng.ts"
import { draw, type TokenDraw } from "./draw.ts"
import type { Generated, GeneratedToken, GenerateEvent, WeightsUsed } from "./EngineService.ts"
import { type EngineError, engineError } from "./EngineError.ts"
import type { Sequence } from "./PagedCache.ts"
import type { Sampling } from "./Sampling.ts"
import { makeStopSearch, type StopSearch } from "./stopStrings.ts"
import type { Version } from "./Versions.ts"

/** Decodes tokens to text one by one. `Tokenizer` has this method. */
export interface Detokenizer {
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
  /** The tokens of the prompt and the answer; only the first `known` elements are set. */
  readonly ids: Int32Array
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

  private readonly random: Stream
  private readonly eosIds: ReadonlyArray<number>
  private readonly decoder: ReturnType<Detokenizer["decoder"]>
  private readonly stops: StopSearch
  private readonly generated: Array<GeneratedToken> = []
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
    this.known = this.promptLength
    this.random = stream(options.seed, "token")
    this.eosIds = options.eosIds
    this.decoder = options.detokenizer.decoder()
    this.stops = makeStopSearch(options.sampling.stop)
  }

  /**
   * Draws the next token from the logits that begin at `offset`. Returns the answer if it is complete; otherwise undefined.
   */
  next(drawing: TokenDraw, logits: Float32Array, offset: number): Generated | EngineError | undefined {
    const { sampling, generated, version } = this
    if (version === null) return undefined
    const uniform = sampling.temperature === 0 ? 0 : this.random.childUniformDouble(generated.length)
    const id = draw(drawing, logits, offset, sampling, uniform)
    if (id < 0) {
      const problem = `token ${generated.length + 1} of the answer: expected finite logits, found NaN or infinite ones`
      return engineError(this.model, "notFinite", `${problem}; check the weights`)
    }
    const listed = Math.min(sampling.topLogprobs, drawing.vocabSize)
    const top = Array.from({ length: listed }, (_, rank) => ({
      id: drawing.topIds[rank],
      logprob: drawing.topLogprobs[rank],
    }))
    const token = { id, logprob: drawing.logprob, top }
    this.ids[this.known++] = id
    generated.push(token)

    const isEnd = sampling.stopTokenIds.includes(id) || (!sampling.ignoreEos && this.eosIds.includes(id))
    const text = isEnd ? "" : this.stops.push(this.decoder.push(id))
    this.text += text
    this.onEvent?.({ _tag: "Token", token, text, weights: version.used })
    if (isEnd) return this.finish(version.used, "stop", id)
    if (this.stops.found() !== null) return this.finish(version.used, "stop", null)
    return this.known === this.maxLength ? this.finish(version.used, "length", null) : undefined
  }

  private finish(weights: WeightsUsed, finishReason: Generated["finishReason"], endId: number | null): Generated {
    const { stops } = this
    const decoded = stops.push(this.decoder.end())
    const rest = decoded + (stops.found() === null ? stops.end() : "")
    this.text += rest
    const stop = stops.found()
    const answer: Generated = {
      tokens: this.generated,
      text: this.text,
      finishReason: stop === null ? finishReason : "stop",
      stopReason: endId ?? stop,
      weights,
    }
    this.onEvent?.({ _tag: "Finished", text: rest, generated: answer })
    return answer
  }
}
