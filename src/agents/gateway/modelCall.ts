/** Converts a call that passed the gateway to the record that every agent's call has. */
import type { ModelCall } from "../agent/Agent.ts"
import type { EndedCall } from "./Sessions.ts"

/**
 * Makes the record of a call; null if the call failed, because a record needs an answer. What the agent does with the answer
 * is unknown, so it counts as meant for the agent itself, like the call of a tool.
 */
export const modelCallOf = ({ request, completion, isCutOff }: EndedCall, loopIndex: number): ModelCall | null =>
  completion === null
    ? null
    : {
        purpose: "action",
        target: "internal",
        loopIndex,
        messages: request.messages,
        ...(request.tools.length === 0 ? {} : { tools: request.tools }),
        completion,
        toolResults: [],
        parsed: null,
        incomplete: isCutOff,
      }
