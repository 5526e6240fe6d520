/** The base class of the readers of formats in which a call is a JSON object. It keeps the text that is not read yet. */
import { CallReader } from "./callReader.ts"
import type { AnswerEvent, ReaderOptions, ToolReader } from "./ToolFormat.ts"

export abstract class BufferedReader implements ToolReader {
  private readonly tools: ReadonlyArray<string>
  /** The text that is not yet read. */
  protected buffer = ""
  /** Reads the last call. */
  protected call: CallReader

  constructor({ tools }: ReaderOptions) {
    this.tools = tools
    this.call = new CallReader(tools)
  }

  push(text: string): ReadonlyArray<AnswerEvent> {
    this.buffer += text
    const events: Array<AnswerEvent> = []
    while (this.step(events));
    return events
  }

  abstract end(): ReadonlyArray<AnswerEvent>

  /** Reads a part of the buffer. Returns whether more of the buffer can be read now. */
  protected abstract step(events: Array<AnswerEvent>): boolean

  /** Begins a call, whose JSON object is at the beginning of a text. */
  protected beginCall(text: string): void {
    this.call = new CallReader(this.tools)
    this.buffer = text
  }

  /** Reads as much of the call as the buffer has. Returns its events, and whether the call is complete. */
  protected readCall(): { readonly events: ReadonlyArray<AnswerEvent>; readonly isComplete: boolean } {
    const { events, rest } = this.call.push(this.buffer)
    this.buffer = rest ?? ""
    return { events, isComplete: rest !== null }
  }
}

/**
 * Returns how many characters of `text` can be passed on now. Held back are an end that may be the beginning of `tag`, and
 * whitespace before it or at the end.
 */
export const passable = (text: string, tag: string): number => {
  let begun = Math.min(text.length, tag.length - 1)
  while (begun > 0 && !tag.startsWith(text.slice(text.length - begun))) begun--
  return text.slice(0, text.length - begun).trimEnd().length
}
