/**
 * Holds texts that replace an agent's own texts by name, such as its system prompt. A learner of prompts tries texts in this
 * way, and a finished run of it ends with the best ones. The service is read when an agent is made.
 *
 * An agent of a config has its prompts by their keys (`system_prompt`), few-shot examples after the system prompt
 * (`examples`), and the descriptions of tools (`tool:NAME`). A function agent has the names with which it asks for texts. A
 * name that an agent does not have is ignored.
 *
 * @example
 * ```ts
 * const { make } = yield* Agents.decode({ lm_config: { model: "gpt-4.1-mini" }, system_prompt: "Answer briefly." })
 * const agent = yield* Effect.provideService(make, AgentTexts, { system_prompt: "Answer with one word." })
 * ```
 */
import { Context } from "effect"

export const AgentTexts = Context.Reference<Readonly<Record<string, string>>>("effect-rl/agent/AgentTexts", {
  defaultValue: () => ({}),
})

/**
 * Receives the name and the agent's own value of each text for which an agent with code of its own asks. The service is read
 * at each turn, so a learner of prompts knows for which texts an episode has asked.
 *
 * @example
 * ```ts
 * const own = new Map<string, string>()
 * yield* Effect.provideService(agent.act({ _tag: "Observation", text: "?" }), AskedTexts, (name, text) => void own.set(name, text))
 * ```
 */
export const AskedTexts = Context.Reference<(name: string, own: string) => void>("effect-rl/agent/AskedTexts", {
  defaultValue: () => () => {},
})
