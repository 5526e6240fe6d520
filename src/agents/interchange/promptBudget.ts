/**
 * Limits the prompts of a rollout that is made from somebody else's file. Each call has its whole prompt, so a file with many small
 * messages would become a rollout that is larger by orders of magnitude, and does not fit into memory or a line of a file.
 */
import { Effect } from "effect"
import { FormatError } from "../../base/formats/FormatError.ts"
import { jsonLength } from "../../base/text/jsonFacts.ts"
import type { ChatMessage, ToolSpec } from "../lm/Chat.ts"

/** The largest length of all prompts of a rollout together, in characters. */
const mostCharacters = 2 ** 28
/** The length of the conversation so far, and of all prompts so far, in characters of JSON. */
export interface PromptBudget {
  conversation: number
  spent: number
}

/** Counts messages that are added to the conversation, with the tools that they call. */
export const growBy = (budget: PromptBudget, messages: ReadonlyArray<ChatMessage>): void => {
  for (const message of messages) budget.conversation += jsonLength(message)
}

const tooLong = (what: string, problem: string): FormatError =>
  new FormatError({
    message: `the episode ${JSON.stringify(what.slice(0, 80))} is too long: ${problem} more than ${mostCharacters} characters together`,
  })

/** Counts a prompt: the whole conversation, and the tools. Throws a `FormatError` if all prompts together are too long. */
export const spend = (budget: PromptBudget, rollout: string, tools: ReadonlyArray<ToolSpec>): void => {
  budget.spent += budget.conversation
  for (const tool of tools) budget.spent += jsonLength(tool)
  if (budget.spent > mostCharacters) throw tooLong(rollout, "its prompts have")
}

/**
 * Makes a function that joins the parts of messages by line ends. Parts may refer to texts that the file has only once, so it throws a
 * `FormatError` once the texts that it made for an episode have too many characters together.
 */
export const joiningParts = (episode: string) => {
  let made = 0
  return (parts: ReadonlyArray<string>): string => {
    if (parts.length === 1) return parts[0]
    made += parts.reduce((sum, { length }) => sum + length + 1, 0)
    if (made > mostCharacters) throw tooLong(episode, "its texts have")
    return parts.join("\n")
  }
}

/** Makes rollouts, with a typed error if their prompts are too long. */
export const withinBudget = <A>(make: () => A): Effect.Effect<A, FormatError> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(make())
    } catch (error) {
      if (error instanceof FormatError) return Effect.fail(error)
      throw error
    }
  })
