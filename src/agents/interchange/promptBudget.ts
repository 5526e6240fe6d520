/**
 * Limits the prompts of a rollout that is made from somebody else's file. Each call has its whole prompt, so a file with many small
 * messages would become a rollout that is larger by orders of magnitude, and does not fit into memory or a line of a file.
 */
import { Effect } from "effect"
import { FormatError } from "../../base/formats/FormatError.ts"
import type { ChatMessage } from "../lm/Chat.ts"

/** The largest length of all prompts of a rollout together, in characters. */
const mostCharacters = 2 ** 28
/** The characters that a message takes besides its content. */
const perMessage = 64

/** The length of the conversation so far, and of all prompts so far. */
export interface PromptBudget {
  conversation: number
  spent: number
}

/** Counts messages that are added to the conversation. */
export const growBy = (budget: PromptBudget, messages: ReadonlyArray<ChatMessage>): void => {
  for (const { content } of messages) budget.conversation += content.length + perMessage
}

/** Counts a prompt that is the whole conversation. Throws a `FormatError` if all prompts together are too long. */
export const spend = (budget: PromptBudget, rollout: string): void => {
  budget.spent += budget.conversation
  if (budget.spent <= mostCharacters) return
  const problem = `its prompts have more than ${mostCharacters} characters together`
  throw new FormatError({ message: `the episode ${JSON.stringify(rollout.slice(0, 80))} is too long: ${problem}` })
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
