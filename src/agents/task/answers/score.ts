/**
 * Scores answers to questions: each function takes an answer and the right ones, and returns feedback.
 *
 * @example
 * ```ts
 * exact("  PARIS. ", { targets: ["Paris"] }).score // 1
 * numeric("about \\boxed{1,234}", { targets: ["1234"] }).score // 1
 * ```
 */
import type { Feedback } from "../Feedback.ts"
import { lastNumber, numberOf } from "./number.ts"
import { normalise, short, unboxed } from "./text.ts"

/** The data with which an answer is scored. */
export interface AnswerKey {
  /** The right answers. An answer that equals any one of them is right. */
  readonly targets: ReadonlyArray<string>
  readonly choices?: ReadonlyArray<string>
  readonly question?: string
  /** All fields of the record from which the question was read, by name. */
  readonly fields?: Readonly<Record<string, unknown>>
}

export type AnswerScorer = (answer: string, key: AnswerKey) => Feedback

/** Makes feedback with the message that all scorers use. `why` is the reason why `answer` is wrong, if it is known. */
export const verdict = (score: number, target: string, answer: string, why?: string): Feedback => ({
  score,
  target,
  message:
    score === 1
      ? "Correct."
      : score > 0
        ? `Partly correct (${score.toFixed(2)}). The answer is: ${target}`
        : `Incorrect${why === undefined ? "" : `: ${why}`}. Your answer was: ${short(answer) || "(empty)"}. The answer is: ${target}`,
})

/** Makes the feedback for the target with the highest score; `why` explains a score of 0. */
const best = (key: AnswerKey, answer: string, score: (target: string) => number, why?: string): Feedback => {
  let most = 0
  let target = key.targets[0]
  for (const candidate of key.targets) {
    const value = score(candidate)
    if (value > most) [most, target] = [value, candidate]
  }
  return verdict(most, target, answer, most === 0 ? why : undefined)
}

/** Scores 1 if the answer is the same text as a target, ignoring case, spaces, quotes, a full stop and `\boxed{…}`. */
export const exact: AnswerScorer = (answer, key) => {
  const text = normalise(unboxed(answer))
  return best(key, answer, (target) => (text === normalise(unboxed(target)) ? 1 : 0))
}

/** Returns the words of a text in lower case, without punctuation and articles, as in SQuAD's evaluation. */
const words = (text: string): ReadonlyArray<string> =>
  text
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\s]/gu, "")
    .split(/\s+/)
    .filter((word) => word !== "" && !["a", "an", "the"].includes(word))

const overlap = (answered: ReadonlyArray<string>, wanted: ReadonlyArray<string>): number => {
  if (answered.length === 0 || wanted.length === 0) return answered.length === wanted.length ? 1 : 0
  const left = new Map<string, number>()
  for (const word of wanted) left.set(word, (left.get(word) ?? 0) + 1)
  let common = 0
  for (const word of answered) {
    const count = left.get(word) ?? 0
    if (count > 0) {
      left.set(word, count - 1)
      common++
    }
  }
  return (2 * common) / (answered.length + wanted.length)
}

/** Scores common words by F1, the harmonic mean of precision and recall (Rajpurkar et al. 2016, arXiv:1606.05250). */
export const f1: AnswerScorer = (answer, key) => {
  const answered = words(unboxed(answer))
  return best(key, answer, (target) => overlap(answered, words(unboxed(target))))
}

/** Makes a scorer of the number in an answer, within a tolerance. If a target isn't a number, it compares texts. */
export const numericWithin =
  (tolerance: number): AnswerScorer =>
  (answer, key) => {
    const number = lastNumber(answer)
    const same = normalise(unboxed(answer))
    const score = (target: string): number => {
      const wanted = numberOf(target)
      if (wanted === undefined) return same === normalise(unboxed(target)) ? 1 : 0
      return number !== undefined && Math.abs(number - wanted) <= tolerance ? 1 : 0
    }
    return best(key, answer, score, number === undefined ? "there is no number in it" : undefined)
  }

export const numeric: AnswerScorer = numericWithin(1e-6)

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/** Returns the letter of a choice by its index: `A` for 0, `B` for 1, and so on. */
export const letterOf = (index: number): string => letters[index] ?? String(index + 1)

const indexOfLetter = (letter: string, count: number): number | undefined => {
  const index = letters.indexOf(letter.toUpperCase())
  return letter.length === 1 && index >= 0 && index < count ? index : undefined
}

/** Returns the index of the choice that a text names by its own text or its letter: `Paris`, `b`, `(B)`, `B) Paris`. */
const named = (text: string, choices: ReadonlyArray<string>): number | undefined => {
  const plain = normalise(text)
  const byText = choices.findIndex((choice) => normalise(choice) === plain)
  if (byText >= 0) return byText
  const marked = /^\(?([a-z])(?:[).:]+|$)\s*(.*)$/s.exec(plain)
  if (marked === null) return undefined
  const index = indexOfLetter(marked[1], choices.length)
  // If a text follows the letter, it must be the text of that choice: if A is Paris, "a: London" names no choice.
  return index !== undefined && (marked[2] === "" || marked[2] === normalise(choices[index])) ? index : undefined
}

/** Returns the index of the choice that a target names. A number that is not the text of a choice is itself an index. */
export const choiceOf = (target: string, choices: ReadonlyArray<string>): number | undefined => {
  const index = named(target, choices)
  if (index !== undefined) return index
  const number = /^\d+$/.test(target.trim()) ? Number(target) : undefined
  return number !== undefined && number < choices.length ? number : undefined
}

/** Returns the index of the choice that an answer names, as its whole text or at its end ("the answer is B"). */
const chosen = (answer: string, choices: ReadonlyArray<string>): number | undefined => {
  const direct = named(unboxed(answer), choices)
  if (direct !== undefined) return direct
  // Remove spaces at the end first, because many line ends there would make the search slow.
  const plain = answer.trimEnd()
  const ending = [...plain.matchAll(/\b(?:answer|option|choice)\b\s*(?:is|are|=|:)?\s*:?\s*([^\n]+)/gi)].at(-1)
  if (ending === undefined) return undefined
  const words = ending[1].trim()
  const letter = /^[*("']*([A-Za-z])[*)"']*(?:[).:,;]|$)/.exec(words)?.[1]
  return named(words, choices) ?? (letter === undefined ? undefined : indexOfLetter(letter, choices.length))
}

/** Scores 1 if the answer names a right choice by its letter or text. Without choices, it compares texts or letters. */
export const mcq: AnswerScorer = (answer, key) => {
  const { choices = [] } = key
  const options = choices.length === 0 ? Array.from(letters) : choices
  const choice = chosen(answer, options)
  const wanted = key.targets.map((target) => choiceOf(target, options))
  if (choices.length === 0) {
    const same = exact(answer, key)
    if (same.score === 1 || wanted.includes(undefined)) return same
  }
  const right = choice !== undefined && wanted.includes(choice)
  const first = wanted[0] ?? 0
  const target = choices.length === 0 ? letterOf(first) : `${letterOf(first)}. ${options[first]}`
  const why = choice === undefined ? "it names none of the choices" : undefined
  return verdict(right ? 1 : 0, target, answer, right ? undefined : why)
}
