/**
 * Holds answers to a format: for each step of a request, it excludes the tokens with which the text could no longer fit the
 * format. Each request has a cursor of its own in the format; formats are kept for later requests.
 */
import { EngineError } from "../inference/EngineError.ts"
import { Automaton } from "./Automaton.ts"
import type { AutomatonState } from "./AutomatonState.ts"
import { compileTextFormat } from "./compileTextFormat.ts"
import { compileJsonSchema } from "./jsonSchema.ts"
import { formatError, type Networks } from "./Network.ts"
import type { TextFormat } from "./TextFormat.ts"
import { TokenMasks, type Vocabulary } from "./TokenMasks.ts"

/** The largest number of characters of a schema as JSON. */
const mostCharacters = 262_144
/** The number of formats that are kept. */
const mostFormats = 16

/** A text that is being generated in a format. */
export class FormatCursor {
  private readonly masks: TokenMasks
  private readonly automaton: Automaton
  private state: AutomatonState

  constructor(masks: TokenMasks, automaton: Automaton) {
    this.masks = masks
    this.automaton = automaton
    this.state = automaton.start()
  }

  /** Whether the text is complete, so that nothing can follow. */
  get isComplete(): boolean {
    return this.state.isClosed
  }

  /** Whether the text may end here. */
  get canEnd(): boolean {
    return this.state.isEnd
  }

  /** Sets the logits of all tokens that cannot follow to −∞. The tokens `endIds` can follow where the text can end. */
  exclude(logits: Float32Array, endIds: ReadonlyArray<number>): void {
    const { state } = this
    const mask = this.masks.maskOf(this.automaton, state)
    const ends = endIds.map((id) => logits[id])
    for (let word = 0; word < mask.length; word++) {
      const bits = mask[word]
      const most = Math.min(logits.length, (word + 1) * 32)
      for (let id = word * 32; id < most; id++) if (((bits >>> (id & 31)) & 1) === 0) logits[id] = -Infinity
    }
    for (const [index, id] of endIds.entries()) logits[id] = state.isEnd ? ends[index] : -Infinity
    // NaN differs from −∞, too, and is reported as a fault of the model when a token is drawn.
    if (logits.some((logit) => logit !== -Infinity)) return
    throw new EngineError({
      reason: "invalidRequest",
      part: "jsonSchema",
      message:
        "the model's tokenizer has no token that can follow in this format; use a model whose tokens include its characters, such as { and \" for JSON",
    })
  }

  /** Reads a token that is no end token. */
  accept(id: number): void {
    const next = this.masks.after(this.automaton, this.state, id)
    if (next === null) throw new Error(`token ${id} cannot follow in the format`)
    this.state = next
  }
}

/** The formats of an answer, of which at most one is set. */
interface RequestedFormats {
  /** The JSON Schema that the text fits. */
  readonly jsonSchema: unknown
  readonly textFormat: TextFormat | null
}

export class AnswerFormats {
  private readonly vocabulary: Partial<Vocabulary>
  private readonly vocabSize: number
  private masks: TokenMasks | undefined
  private readonly known = new Map<string, Automaton>()

  constructor(vocabulary: Partial<Vocabulary>, vocabSize: number) {
    this.vocabulary = vocabulary
    this.vocabSize = vocabSize
  }

  /** Begins an answer in its format; returns undefined if it can be any text. Throws an `EngineError` if it has two formats. */
  ofAnswer({ jsonSchema, textFormat }: RequestedFormats): FormatCursor | undefined {
    if (textFormat === null) return jsonSchema === null ? undefined : this.cursor(jsonSchema)
    if (jsonSchema !== null) throw formatError(textFormat.type, "expected no JSON Schema beside it")
    const text = JSON.stringify(["text", textFormat])
    return this.begun({ name: textFormat.type, text }, () => compileTextFormat(textFormat))
  }

  /** Begins a text that fits a JSON Schema. Throws an `EngineError` if the schema cannot be used. */
  cursor(schema: unknown): FormatCursor {
    return this.begun({ name: "schema", text: textOf(schema) }, () => compileJsonSchema(schema))
  }

  /** Begins a text in a format that is compiled unless it is known. `text` is the format as JSON, `name` its name in messages. */
  private begun(
    { name, text }: { readonly name: string; readonly text: string },
    compile: () => Networks,
  ): FormatCursor {
    const { bytesOf, special } = this.vocabulary
    if (bytesOf === undefined || special === undefined)
      throw formatError(name, "the engine's tokenizer does not know the bytes of its tokens")
    this.masks ??= new TokenMasks({ bytesOf, special }, this.vocabSize)
    if (text.length > mostCharacters)
      throw formatError(name, `expected at most ${mostCharacters} characters as JSON, found ${text.length}`)
    const automaton = this.known.get(text) ?? new Automaton(compile())
    this.known.delete(text)
    this.known.set(text, automaton)
    for (const oldest of this.known.keys()) if (this.known.size > mostFormats) this.known.delete(oldest)
    return new FormatCursor(this.masks, automaton)
  }
}

/** Returns a schema as JSON. */
const textOf = (schema: unknown): string => {
  try {
    return JSON.stringify(schema)
  } catch {
    throw formatError("schema", "expected fewer values inside each other")
  }
}
