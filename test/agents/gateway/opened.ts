/** Opens a session of a gateway for a test, with a client of the `openai` package. */
import { Effect, Redacted } from "effect"
import OpenAI from "openai"
import { type LmRequest, LmRequest as Request } from "../../../src/agents/lm/Chat.ts"
import type { LmService } from "../../../src/agents/lm/Lm.ts"
import * as LmConfig from "../../../src/agents/lm/LmConfig.ts"
import * as Lms from "../../../src/agents/lm/Lms.ts"
import { AgentError } from "../../../src/agents/agent/AgentError.ts"
import { CallRecorder, Gateway } from "../../../src/agents/gateway/Gateway.ts"

export interface OpenedOptions {
  readonly id?: string
  readonly base?: Partial<Omit<LmRequest, "messages">>
}

/** Sends a request, and returns the status and the text of the answer. */
export const send = (address: string, init: RequestInit & { readonly key?: string }) =>
  Effect.promise(async () => {
    const { key, headers, ...rest } = init
    const response = await fetch(address, {
      method: "POST",
      ...rest,
      headers: {
        "content-type": "application/json",
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...Object.fromEntries(new Headers(headers)),
      },
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  })

/** Opens a session whose calls `lm` answers. */
export const opened = Effect.fnUntraced(function* (lm: LmService, { id = "s/1", base = {} }: OpenedOptions = {}) {
  const gateway = yield* Gateway
  if (gateway === null) return yield* new AgentError({ agent: "gateway", message: "there is no gateway" })
  const recorder = new CallRecorder()
  const session = yield* gateway.open({ id, lm, base: { ...Request.defaults, model: "target", ...base }, recorder })
  const key = Redacted.value(session.apiKey)
  const client = new OpenAI({ baseURL: session.baseUrl, apiKey: key, maxRetries: 0 })
  const at = session.baseUrl.replace(/\/v1$/, "")
  return { ...session, key, client, at, recorder, calls: () => recorder.calls() }
})

/** Opens a model behind a server of a test. */
export const behind = (url: string, more: Partial<LmConfig.LmOptions> = {}, options: Lms.LmOpenOptions = {}) =>
  Lms.open(
    LmConfig.make({ model: "vllm:target", baseUrl: url, maxRetries: 2, startingDelay: 0, jitter: 0, ...more }),
    options,
  )
