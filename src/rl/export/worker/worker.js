/**
 * Serves the policy over HTTP, as an edge worker:
 *
 *   GET /       answers with the policy's card
 *   POST /act   {"observation": […]} answers {"action": …}; {"observations": [[…], …]} answers {"actions": […, …]}.
 *               A policy with a memory also answers "memory" (or "memories"): send it back with the next observation.
 *               A policy with action masks needs "mask" (or "masks"): a 1 for each choice that is allowed, else 0, or "all".
 *
 * A wrong request is answered by {"error": "…"} with status 400, 404, 405 or 413.
 */
import { card, instantiate, PolicyError } from "./policy.js"
import module from "./policy.wasm"

/** The largest body of a request, in bytes. */
const mostBytes = 4 * 1024 * 1024

const { act } = instantiate(module)

class Refusal extends Error {
  constructor(status, message, headers = {}) {
    super(message)
    this.status = status
    this.headers = headers
  }
}

const json = (value, status = 200, headers = {}) =>
  new Response(`${JSON.stringify(value)}\n`, { status, headers: { "content-type": "application/json", ...headers } })

/** Reads the body as text, and stops as soon as it is too large. */
const readText = async (request) => {
  const tooLarge = new Refusal(413, `body: expected at most ${mostBytes} bytes`)
  if (Number(request.headers.get("content-length")) > mostBytes) throw tooLarge
  const decoder = new TextDecoder("utf-8", { fatal: true })
  let text = ""
  let size = 0
  try {
    for await (const bytes of request.body ?? []) {
      size += bytes.length
      if (size > mostBytes) throw tooLarge
      text += decoder.decode(bytes, { stream: true })
    }
    return text + decoder.decode()
  } catch (error) {
    throw error instanceof TypeError ? new Refusal(400, "body: expected UTF-8 text") : error
  }
}

const keys = ["observation", "memory", "mask", "observations", "memories", "masks"]

/** Parses the body of `POST /act`, and checks everything about it except the numbers, which the policy checks. */
const parse = (text) => {
  let body
  try {
    body = JSON.parse(text)
  } catch {
    throw new Refusal(400, 'body: expected JSON such as {"observation": […]}')
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new Refusal(400, 'body: expected an object such as {"observation": […]}')
  }
  const unknown = Object.keys(body).find((key) => !keys.includes(key))
  if (unknown !== undefined) {
    throw new Refusal(400, `body: unknown key ${JSON.stringify(unknown.slice(0, 40))}; expected ${keys.join(", ")}`)
  }
  const isBatch = "observations" in body
  const others = isBatch ? ["observation", "memory", "mask"] : ["memories", "masks"]
  if (isBatch === "observation" in body || others.some((key) => key in body)) {
    throw new Refusal(400, "body: expected observation (and memory, mask), or observations (and memories, masks)")
  }
  if (isBatch && !Array.isArray(body.observations)) throw new Refusal(400, "observations: expected an array")
  const { observations } = body
  for (const key of ["memories", "masks"]) {
    const list = body[key] ?? null
    if (list !== null && !(Array.isArray(list) && list.length === observations.length)) {
      throw new Refusal(400, `${key}: expected an array of ${observations.length}, one for each observation`)
    }
  }
  return { isBatch, ...body }
}

/** Acts on each observation of a batch. An error names the observation's index. */
const actOnEach = (observations, memories, masks) =>
  observations.map((observation, index) => {
    try {
      return act(observation, memories?.[index], masks?.[index])
    } catch (error) {
      const place = (_, name) => `${name === "memory" ? "memories" : `${name}s`}[${index}]`
      throw error instanceof PolicyError
        ? new PolicyError(error.message.replace(/^(observation|memory|mask)/, place))
        : error
    }
  })

const answer = async (request) => {
  const { pathname } = new URL(request.url)
  const allowed = { "/": ["GET", "HEAD"], "/act": ["POST"] }[pathname]
  if (allowed === undefined) throw new Refusal(404, "expected GET / or POST /act")
  if (!allowed.includes(request.method)) {
    throw new Refusal(405, `expected ${allowed[0]} ${pathname}`, { allow: allowed.join(", ") })
  }
  if (pathname === "/") return json(card)
  const { isBatch, observation, memory, mask, observations, memories, masks } = parse(await readText(request))
  if (!isBatch) return json(act(observation, memory, mask))
  const acted = actOnEach(observations, memories, masks)
  const actions = acted.map(({ action }) => action)
  return json(card.memory === 0 ? { actions } : { actions, memories: acted.map((one) => one.memory) })
}

export default {
  async fetch(request) {
    try {
      return await answer(request)
    } catch (error) {
      if (error instanceof Refusal) return json({ error: error.message }, error.status, error.headers)
      if (error instanceof PolicyError) return json({ error: error.message }, 400)
      throw error
    }
  },
}
