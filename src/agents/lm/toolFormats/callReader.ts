/**
 * Reads one call of a tool, a JSON object like `{"name": "add", "arguments": {"a": 1}}`, while its text arrives. Once the
 * name is read, the text of the arguments is passed on as the model wrote it.
 */
import { isPlain } from "../../../base/config/plain.ts"
import { parsedJson } from "../../../base/text/text.ts"
import type { AnswerEvent } from "./ToolFormat.ts"

/** Finds the end of a JSON object whose text arrives in pieces. */
export class ObjectEnd {
  private depth = 0
  private inString = false
  private escaped = false

  /** Returns the index after the object's last brace, at or after `from`; −1 if the object has not ended yet. */
  find(text: string, from: number): number {
    for (let at = from; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (this.inString) {
        if (this.escaped) this.escaped = false
        else if (code === 92) this.escaped = true
        else if (code === 34) this.inString = false
      } else if (code === 34) this.inString = true
      else if (code === 123 || code === 91) this.depth++
      else if ((code === 125 || code === 93) && --this.depth === 0) return at + 1
    }
    return -1
  }
}

/** Matches the beginning of a call up to its arguments, if the name comes first and the arguments are an object. */
const header = /^\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)/

/** The result of `CallReader.push`: events, and the text after the call if the call has ended. */
interface Pushed {
  readonly events: ReadonlyArray<AnswerEvent>
  readonly rest: string | null
}

export class CallReader {
  private text = ""
  /** The index up to which `whole` has searched. */
  private searched = 0
  /** The index of the next character of the arguments to pass on; −1 before the arguments. */
  private passed = -1
  private readonly whole = new ObjectEnd()
  private readonly argumentsEnd = new ObjectEnd()
  private argumentsEnded = false
  private readonly tools: ReadonlyArray<string>

  /** `tools` are the names of tools that may be called without arguments. */
  constructor(tools: ReadonlyArray<string>) {
    this.tools = tools
  }

  /** Reads the next piece. The first piece begins with the object's brace. */
  push(piece: string): Pushed {
    this.text += piece
    const events: Array<AnswerEvent> = []
    if (this.passed < 0) {
      const match = header.exec(this.text)
      const name: unknown = match === null ? undefined : parsedJson(match[1])
      if (match !== null && typeof name === "string") {
        events.push({ _tag: "Call", name })
        this.passed = match[0].length
      }
    }
    if (this.passed >= 0 && !this.argumentsEnded) {
      const end = this.argumentsEnd.find(this.text, this.passed)
      this.argumentsEnded = end >= 0
      const until = end >= 0 ? end : this.text.length
      if (until > this.passed) events.push({ _tag: "Arguments", text: this.text.slice(this.passed, until) })
      this.passed = until
    }
    const end = this.whole.find(this.text, this.searched)
    this.searched = this.text.length
    if (end < 0) return { events, rest: null }
    if (this.passed < 0) for (const event of this.complete(this.text.slice(0, end))) events.push(event)
    return { events, rest: this.text.slice(end) }
  }

  /** Returns the events of the text that was held back, for a call that was cut off. */
  end(): ReadonlyArray<AnswerEvent> {
    return this.passed >= 0 || this.text === "" ? [] : [{ _tag: "Text", text: this.text }]
  }

  /** Reads a whole object whose keys are in another order, or which is not a call. */
  private complete(object: string): ReadonlyArray<AnswerEvent> {
    const call = parsedJson(object)
    const text: ReadonlyArray<AnswerEvent> = [{ _tag: "Text", text: object }]
    if (!isPlain(call) || typeof call.name !== "string") return text
    const values = call.arguments ?? call.parameters
    if (values === undefined && !this.tools.includes(call.name)) return text
    // Some models write the arguments as a text that contains JSON.
    const written = typeof values === "string" ? values : JSON.stringify(values ?? {})
    return [
      { _tag: "Call", name: call.name },
      { _tag: "Arguments", text: written },
    ]
  }
}
