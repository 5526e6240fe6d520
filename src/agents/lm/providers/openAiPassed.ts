/** Passes on bodies of OpenAI's chat completions that other programs sent, for `openAi.ts`. */
import { isPlain, type Plain } from "../../../base/config/plain.ts"
import { joined } from "../../../base/text/bytes.ts"
import { parsedJson } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import type { LmRequest } from "../Chat.ts"
import { type Dialect, thinks } from "./openAiWire.ts"

const isMissing = (value: unknown): boolean => value === undefined || value === null

/** Returns the settings of the request that the program's body does not have. */
const missingSettings = (body: Plain, request: LmRequest): Plain => {
  const isThinking = thinks(request.model)
  const limit = isThinking ? "max_completion_tokens" : "max_tokens"
  const hasLimit = !isMissing(body["max_tokens"]) || !isMissing(body["max_completion_tokens"])
  const settings: Plain = {
    ...(isThinking ? {} : { temperature: request.temperature, top_p: request.topP }),
    ...(hasLimit ? {} : { [limit]: request.maxOutputTokens }),
    seed: request.seed,
    ...(request.stop.length === 0 ? {} : { stop: request.stop }),
  }
  return Object.fromEntries(Object.entries(settings).filter(([key, value]) => value !== null && isMissing(body[key])))
}

/** Tells whether a program asks for the numbers of tokens at the end of a stream. */
const wantsUsage = ({ stream_options: options }: Plain): boolean =>
  isPlain(options) && options["include_usage"] === true

/**
 * Returns the body of another program for the server. It is unchanged, except that it has the model's name at the server, and
 * asks for what our records need: the numbers of tokens and, if they are traced, the tokens.
 */
export const passedBody = (body: Plain, request: LmRequest, { tokenIds, extra }: Dialect): Plain => ({
  ...extra,
  ...body,
  ...missingSettings(body, request),
  model: request.model,
  ...(request.traceTokens ? { logprobs: true, ...(tokenIds ? { return_token_ids: true } : {}) } : {}),
  ...(body["stream"] === true && !wantsUsage(body)
    ? { stream_options: { ...(isPlain(body["stream_options"]) ? body["stream_options"] : {}), include_usage: true } }
    : {}),
})

const lineFeed = 0x0a
const carriageReturn = 0x0d

/** Makes the function that returns the indices in the next bytes of a stream at which events end, after their empty line. */
const makeEventEnds = (): ((bytes: Uint8Array) => ReadonlyArray<number>) => {
  let isEmptyLine = false
  return (bytes) => {
    const ends: Array<number> = []
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]
      if (byte === lineFeed && isEmptyLine) ends.push(at + 1)
      if (byte === lineFeed) isEmptyLine = !isEmptyLine
      else if (byte !== carriageReturn) isEmptyLine = false
    }
    return ends
  }
}

/** Tells whether an event has only the numbers of tokens, which the program did not ask for. */
const isUsage = (event: Uint8Array): boolean => {
  const text = utf8.decode(event)
  if (!text.includes('"usage"') || !/"choices":\s*\[\s*\]/.test(text)) return false
  const data = parsedJson(text.replace(/^data:/gm, "").trim())
  return isPlain(data) && Array.isArray(data["choices"]) && data["choices"].length === 0 && isPlain(data["usage"])
}

/**
 * Makes the function that removes the event with the numbers of tokens from a stream, because a program that did not ask for
 * it may not expect an event without choices. The rest of the stream is unchanged; an incomplete event is held back.
 */
export const passedBytes = (body: Plain): ((bytes: Uint8Array) => Uint8Array) => {
  if (wantsUsage(body)) return (bytes) => bytes
  const eventEnds = makeEventEnds()
  // The pieces of an event whose end has not arrived. They are joined once, because a server may send very long events.
  let held: Array<Uint8Array> = []
  return (bytes) => {
    const kept: Array<Uint8Array> = []
    let begin = 0
    for (const end of eventEnds(bytes)) {
      const last = bytes.subarray(begin, end)
      const event = held.length === 0 ? last : joined([...held, last])
      if (!isUsage(event)) kept.push(event)
      held = []
      begin = end
    }
    if (begin < bytes.length) held.push(bytes.slice(begin))
    return kept.length === 1 ? kept[0] : joined(kept)
  }
}
