/**
 * Makes games with a hidden word of five letters and, by default, six guesses. After each guess, the feedback shows which
 * letters are right, and which are at another place in the word. Guessing the word gives 1 point.
 *
 * @example
 * ```yaml
 * train_dataset: { type: word_guess, num_tasks: 1000, seed: 1, guesses: 6 }
 * ```
 */
import { Schema } from "effect"
import { bounded, withDefault } from "../../../base/config/fields.ts"
import type { TextEnv } from "../TextEnv.ts"
import { continues, ends, game, remaining } from "./aloud.ts"
import { levelFields, levelKind, oneOf } from "./levels.ts"
import { fiveLetters } from "./words.ts"

/** Marks each letter of a guess: `+` is right, `?` is elsewhere in the word, `-` is not in it (or not again). */
export const marksOf = (guess: string, word: string): string => {
  const left = Array.from(word).filter((letter, at) => guess[at] !== letter)
  return Array.from(guess, (letter, at) => {
    if (word[at] === letter) return "+"
    const position = left.indexOf(letter)
    if (position < 0) return "-"
    left.splice(position, 1)
    return "?"
  }).join("")
}

/** Returns the word that an action guesses: the whole action, or the only word of five letters in it. */
const guessOf = (action: string): string | undefined => {
  const words = Array.from(action.toLowerCase().matchAll(/\p{L}+/gu), ([word]) => word)
  const fitting = words.filter((word) => /^[a-z]{5}$/.test(word))
  if (words.length === 1) return fitting[0]
  // In "guess: crane", the word "guess" is not the guess.
  const named = fitting.filter((word) => word !== "guess")
  return named.length === 1 ? named[0] : undefined
}

export interface WordGuessTaskOptions {
  readonly id: string
  readonly word: string
  /** The number of guesses, 6 by default. */
  readonly guesses?: number
  readonly metadata?: Readonly<Record<string, unknown>>
}

interface WordGuessState {
  readonly guessed: number
}

const legend = "+ means right, ? in the word at another place, - not in the word."

export const make = ({ id, word, guesses = 6, metadata = {} }: WordGuessTaskOptions): TextEnv => {
  const left = ({ guessed }: WordGuessState): string => remaining(guesses - guessed, "guess", "guesses")
  return game<WordGuessState>({
    id,
    type: "word_guess",
    metadata,
    // Allow additional steps for thoughts and invalid guesses.
    maxSteps: 3 * guesses,
    begin: () => ({
      state: { guessed: 0 },
      observation: `Guess the hidden word of five letters. After each guess you see a mark for each letter: ${legend} ${left({ guessed: 0 })}`,
    }),
    step: (state, action) => {
      const guess = guessOf(action)
      if (guess === undefined) {
        return continues(state, `Answer with one word of five letters, a to z, such as "crane". ${left(state)}`)
      }
      const next: WordGuessState = { guessed: state.guessed + 1 }
      if (guess === word) return ends(next, { score: 1, target: word, message: `${word} is the word.` })
      if (next.guessed === guesses) {
        return ends(next, { score: 0, target: word, message: `No guess is left. The word was ${word}.` })
      }
      return continues(next, `${guess} ${marksOf(guess, word)}\n${left(next)}`)
    },
  })
}

export const Config = Schema.Struct({
  type: withDefault(Schema.Literal("word_guess"), "word_guess"),
  ...levelFields,
  /** The number of guesses that may be made. */
  guesses: withDefault(bounded("count"), 6),
})
export const kind = levelKind("word_guess", Config, ({ guesses }, id, level, random) =>
  make({ id, word: oneOf(fiveLetters, random), guesses, metadata: { level } }),
)
