/**
 * Makes tasks that measure the benefit of memory: each asks for the code word that replaces a word in a secret code. The
 * first time, an agent can only guess; the feedback shows the code word, so an agent that remembers it is right when the word
 * is asked again. The same word is asked in several wordings, so an agent that notes the code words scores better than one
 * that only searches its memory for the same question.
 *
 * With `rule: shift`, each letter of a word is moved by the same number of places in the alphabet. An agent that discovers
 * this rule can answer for words that it has never seen. With `rule: none`, every code word is drawn at random, so it can
 * only be learnt from feedback.
 *
 * @example
 * ```yaml
 * train_dataset: { type: codebook, num_tasks: 200, words: 12, seed: 1 }
 * validation_dataset: { type: codebook, num_tasks: 50, words: 12, seed: 2 } # the same code, asked in another order
 * ```
 */
import { Schema } from "effect"
import { bounded, intBetween, withDefault } from "../../../base/config/fields.ts"
import { stream } from "../../../base/rng/Rng.ts"
import { exact } from "../answers/score.ts"
import { type DatasetKind, make as makeKind } from "../DatasetKind.ts"
import { make as makeQuestion } from "../Question.ts"
import { levelFields, levels, oneOf, shuffled } from "./levels.ts"

const birds = [
  ["kestrel", "heron", "magpie", "swallow", "plover", "raven", "osprey", "linnet", "curlew", "thrush", "wigeon"],
  ["avocet", "bittern", "dunlin", "eider", "fulmar", "goshawk", "hoopoe", "jackdaw", "lapwing", "merlin", "nightjar"],
  ["oriole", "pintail", "quail", "redwing", "siskin", "tern", "whinchat", "wren", "pipit", "martin", "puffin"],
  ["robin", "starling", "sparrow", "dunnock", "gannet", "petrel", "shrike"],
].flat()

const wordings: ReadonlyArray<(word: string) => string> = [
  (word) => `What is the code word for [${word}]? Answer with the code word alone.`,
  (word) => `How is [${word}] written in our code? Answer with the code word alone.`,
  (word) => `Put [${word}] into code. Answer with the code word alone.`,
  (word) => `Our friends say something else instead of [${word}]. Answer with that code word alone.`,
]

export const Config = Schema.Struct({
  type: withDefault(Schema.Literal("codebook"), "codebook"),
  ...levelFields,
  /** The number of different words that are asked. */
  words: withDefault(intBetween(1, birds.length), 12),
  /** The number of wordings in which the same question is asked. */
  wordings: withDefault(intBetween(1, wordings.length), 4),
  /**
   * How the code is made: `shift` moves every letter by the same number of places in the alphabet, `none` draws each
   * code word at random.
   */
  rule: withDefault(Schema.Literals(["shift", "none"]), "shift"),
  /** The seed of the code. Data sets with the same `code_seed` have the same code, even if their `seed` differs. */
  codeSeed: withDefault(bounded("seed"), 42),
})
export type CodebookConfig = typeof Config.Type

const alphabet = "abcdefghijklmnopqrstuvwxyz"

const shiftedBy = (places: number, word: string): string =>
  Array.from(word, (letter) => alphabet[(alphabet.indexOf(letter) + places) % 26]).join("")

/** Draws the words and the code; returns each word with its code word. */
const codeOf = ({ words, rule, codeSeed }: CodebookConfig): ReadonlyArray<readonly [string, string]> => {
  const random = stream(codeSeed, "codebook")
  const places = 1 + random.child("shift").integer(25)
  return shuffled(birds, random.child("words"))
    .slice(0, words)
    .map((word) => {
      const letters = random.child("code", word)
      const drawn = Array.from({ length: word.length }, () => oneOf(Array.from(alphabet), letters)).join("")
      return [word, rule === "shift" ? shiftedBy(places, word) : drawn]
    })
}

export const kind: DatasetKind = makeKind({
  type: "codebook",
  schema: Config,
  open: (config) => {
    const code = codeOf(config)
    return levels(config, (_, id, random) => {
      const [word, target] = oneOf(code, random)
      return makeQuestion({
        id,
        type: "codebook",
        metadata: { word },
        observation: oneOf(wordings.slice(0, config.wordings), random)(word),
        key: { targets: [target] },
        score: exact,
      })
    })
  },
})
