/**
 * Joins the answers to several equal requests to one answer with several choices, as OpenAI's chat completions have them for `n`. A
 * record of a call has one answer, so the gateway sends a request for each choice.
 */
import { isPlain, type Plain } from "../../../base/config/plain.ts"
import { event } from "./ClientProtocol.ts"

const listIn = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** Returns the first choice of an answer. */
const choiceOf = ({ choices }: Plain): Plain => {
  const [first] = listIn(choices)
  return isPlain(first) ? first : {}
}

/** Adds the numbers of tokens of the answers, since each is the answer to a request of its own. */
const usageOf = (answers: ReadonlyArray<Plain>): Plain => {
  const all = answers.map(({ usage }) => (isPlain(usage) ? usage : {}))
  const sum = (key: string): number =>
    all.reduce((total, usage) => total + (typeof usage[key] === "number" ? usage[key] : 0), 0)
  return Object.fromEntries(["prompt_tokens", "completion_tokens", "total_tokens"].map((key) => [key, sum(key)]))
}

/** Joins whole answers to one with a choice for each. */
export const joinedChoices = (answers: ReadonlyArray<Plain>): Plain => ({
  ...answers[0],
  choices: answers.map((answer, index) => ({ ...choiceOf(answer), index })),
  usage: usageOf(answers),
})

/** Encodes whole answers as the events of a stream with a choice for each. */
export const choiceEvents = (answers: ReadonlyArray<Plain>, { withUsage }: { readonly withUsage: boolean }): string => {
  const { id, created, model } = answers[0] ?? {}
  const chunk = (choices: ReadonlyArray<object>, more: object = withUsage ? { usage: null } : {}): string =>
    event({ id, object: "chat.completion.chunk", created, model, choices, ...more })
  const choices = answers.map((answer, index) => {
    const { message, logprobs = null, finish_reason = null } = choiceOf(answer)
    const said: Plain = isPlain(message) ? message : {}
    const calls = listIn(said["tool_calls"]).map((call, at) => ({ index: at, ...(isPlain(call) ? call : {}) }))
    const delta = { ...said, ...(calls.length === 0 ? {} : { tool_calls: calls }) }
    return chunk([{ index, delta, logprobs, finish_reason: null }]) + chunk([{ index, delta: {}, finish_reason }])
  })
  return [...choices, ...(withUsage ? [chunk([], { usage: usageOf(answers) })] : []), event("[DONE]")].join("")
}
