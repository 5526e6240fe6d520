/**
 * Makes tasks with texts of random letters, which a model cannot memorise. Each task has one step, an exact answer, and a
 * score for answers that are nearly right. `ReverseText` and `SortText` use it.
 */
import { Effect, Schema } from "effect"
import { ConfigError } from "../../../base/config/Config.ts"
import { bounded, intBetween, withDefault } from "../../../base/config/fields.ts"
import { exact, type AnswerScorer, verdict } from "../answers/score.ts"
import { type DatasetKind, make as makeKind } from "../DatasetKind.ts"
import { make as makeQuestion } from "../Question.ts"
import { levelFields, levels, oneOf } from "./levels.ts"

const alphabet = Array.from("abcdefghijklmnopqrstuvwxyz")

/**
 * Returns the length of the longest common subsequence: the largest number of letters that both texts have in the same order,
 * ignoring other letters between them.
 */
const commonLength = (a: string, b: string): number => {
  // `row[j]` is the length for the letters of `a` so far and the first j letters of `b`.
  const row = new Array<number>(b.length + 1).fill(0)
  for (const letter of a) {
    let diagonal = 0
    for (let j = 1; j <= b.length; j++) {
      const above = row[j]
      row[j] = letter === b[j - 1] ? diagonal + 1 : Math.max(above, row[j - 1])
      diagonal = above
    }
  }
  return row[b.length]
}

/** The length of the longest answer that is compared. A longer answer scores 0. */
const longestAnswer = 10_000

/** Scores an answer by the share of letters that it and the target have in the same order: 2 · common / (sum of lengths). */
export const similarity: AnswerScorer = (answer, { targets: [target] }) => {
  const text = answer.trim()
  const total = text.length + target.length
  const score = text.length > longestAnswer ? 0 : (2 * commonLength(text, target)) / total
  return verdict(score, target, answer)
}

/** The config keys of these tasks. */
export const letterFields = {
  ...levelFields,
  /** The smallest number of letters of a text. */
  minLetters: withDefault(bounded("letters"), 1),
  /** The largest number of letters of a text. */
  maxLetters: withDefault(bounded("letters"), 8),
  /** The number of different letters in the texts: the first ones of the alphabet. */
  alphabet: withDefault(intBetween(1, alphabet.length), alphabet.length),
  /** `exact` scores 1 or 0; `similarity` scores the share of letters that are in the right order. */
  scoring: withDefault(Schema.Literals(["exact", "similarity"]), "exact"),
}

type Letters = Schema.Struct<typeof letterFields>["Type"] & { readonly type: string }

/** Makes a kind of data set. Its tasks consist of a verb and a text, such as `reverse kestrel`. */
export const letterKind = <S extends Schema.Codec<Letters, unknown>>(
  type: string,
  schema: S,
  {
    verb,
    answer,
  }: { readonly verb: string; readonly answer: (letters: ReadonlyArray<string>) => ReadonlyArray<string> },
): DatasetKind =>
  makeKind({
    type,
    schema,
    open: (config, { from }) => {
      const { minLetters, maxLetters, scoring } = config
      if (minLetters > maxLetters) {
        const problem = `expected at least min_letters, ${minLetters}, found ${maxLetters}`
        return Effect.fail(ConfigError.at(from, "maxLetters", problem))
      }
      return levels(config, (_, id, random) => {
        const letters = alphabet.slice(0, config.alphabet)
        const length = minLetters + random.integer(maxLetters - minLetters + 1)
        const drawn = Array.from({ length }, () => oneOf(letters, random))
        return makeQuestion({
          id,
          type,
          metadata: { letters: length },
          observation: `${verb} ${drawn.join("")}`,
          key: { targets: [answer(drawn).join("")] },
          score: scoring === "exact" ? exact : similarity,
        })
      })
    },
  })
