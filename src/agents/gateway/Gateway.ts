/**
 * Declares the service `Gateway`, which gives agents that run their own code an address for their calls of a model. The calls
 * that arrive there are answered by a model of ours, and are recorded as if the agent were one of ours.
 */
import { Context, type Effect, type Redacted, type Scope } from "effect"
import type { AgentError } from "../agent/AgentError.ts"
import type { ModelCall } from "../agent/Agent.ts"
import type { LmRequest } from "../lm/Chat.ts"
import type { LmService } from "../lm/Lm.ts"

/** Records the calls of a model in the order in which they begin, although they may end in another order. */
export class CallRecorder {
  private readonly slots: Array<ModelCall | undefined> = []

  /** Reserves the place of a call that begins. Returns its number, and a function that records the call when it has ended. */
  begin(): { readonly index: number; readonly end: (call: ModelCall) => void } {
    const index = this.slots.push(undefined) - 1
    return { index, end: (call) => void (this.slots[index] = call) }
  }

  /** Returns the calls that have ended so far. */
  calls(): ReadonlyArray<ModelCall> {
    return this.slots.filter((call) => call !== undefined)
  }
}

export interface GatewaySessionOptions {
  /** The name of the session, which no other open session of this run has. It becomes a part of the address. */
  readonly id: string
  /** The model that answers, with its limits, retries and cache. */
  readonly lm: LmService
  /** The request with the settings of the agent's model, which a call of the agent may change, without its messages. */
  readonly base: Omit<LmRequest, "messages">
  /** Receives the session's calls. */
  readonly recorder: CallRecorder
}

export interface GatewaySession {
  /** The address for clients of OpenAI's API: `http://127.0.0.1:PORT/sessions/ID/v1`. */
  readonly baseUrl: string
  /** The key that the session's calls must have. */
  readonly apiKey: Redacted.Redacted
  /** The reward that the agent has posted; null if it has posted none. */
  readonly reward: Effect.Effect<number | null>
}

export interface GatewayService {
  /** Opens a session. When the scope closes, later calls of the session are refused. */
  readonly open: (options: GatewaySessionOptions) => Effect.Effect<GatewaySession, AgentError, Scope.Scope>
}

/** The gateway of a program; null if it has none. `effect-rl/node` provides one in `platform`. */
export const Gateway = Context.Reference<GatewayService | null>("effect-rl/gateway/Gateway", {
  defaultValue: () => null,
})
