/** Makes the service `Gateway` from a server that listens: it opens sessions for agents of this program, and ends them. */
import { Clock, Effect, Redacted } from "effect"
import { AgentError } from "../agent/AgentError.ts"
import type { CallRecorder, GatewayService, GatewaySession, GatewaySessionOptions } from "./Gateway.ts"
import { modelCallOf } from "./modelCall.ts"
import type { CallPlace, Sessions } from "./Sessions.ts"

/** Records a call of the session in the place that it was given. */
const placeIn = (recorder: CallRecorder): CallPlace => {
  const { index, end } = recorder.begin()
  return {
    index,
    end: (call) =>
      Effect.sync(() => {
        const record = modelCallOf(call, index)
        if (record !== null) end(record)
      }),
  }
}

/**
 * Makes the service. `address` starts the server if it does not listen yet, and returns its address without a path. A session
 * ends with the scope in which it is opened.
 */
export const makeService = (sessions: Sessions, address: Effect.Effect<string, AgentError>): GatewayService => ({
  open: Effect.fnUntraced(function* ({ id, lm, base, recorder }: GatewaySessionOptions) {
    const url = yield* address
    const context = yield* Effect.context<never>()
    const options = {
      id,
      modelOf: () => ({ lm, base }),
      models: [base.model],
      embed: null,
      begin: () => placeIn(recorder),
      onReward: () => Effect.void,
      onEnd: () => Effect.void,
    }
    const opening = Effect.mapError(
      Effect.flatMap(Clock.currentTimeMillis, (now) => sessions.add(options, context, now)),
      ({ message }) => new AgentError({ agent: "gateway", message: `gateway: ${message}` }),
    )
    const session = yield* Effect.acquireRelease(opening, (session) => sessions.end(session, "program"))
    const opened: GatewaySession = {
      baseUrl: `${url}/sessions/${encodeURIComponent(id)}/v1`,
      apiKey: session.key ?? Redacted.make("none"),
      reward: Effect.sync(() => session.reward),
    }
    return opened
  }),
})
