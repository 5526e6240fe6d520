/**
 * Makes games in which the agent must find out a secret thing by questions that are answered with yes or no. Naming the
 * thing ends the game with 1 point; a wrong name counts as a question.
 *
 * @example
 * ```yaml
 * train_dataset: { type: twenty_questions, num_tasks: 1000, seed: 1, questions: 20 }
 * ```
 */
import { Schema, Struct } from "effect"
import { bounded, withDefault } from "../../../base/config/fields.ts"
import type { TextEnv } from "../TextEnv.ts"
import { continues, ends, game, remaining } from "./aloud.ts"
import { levelFields, levelKind, oneOf } from "./levels.ts"

/** The attributes that questions can ask for, each with other words for it: "Does it fly?" asks for "flies". */
const wordsFor = {
  alive: ["living"],
  animal: ["animals"],
  plant: ["plants"],
  flies: ["fly"],
  swims: ["swim"],
  legs: ["leg"],
  fur: ["furry"],
  eaten: ["eat"],
  wood: ["wooden"],
  metal: [],
  wheels: ["wheel"],
  electric: ["electricity"],
  heavy: [],
  round: [],
  music: ["musical"],
  pet: [],
  red: [],
  yellow: [],
} satisfies Record<string, ReadonlyArray<string>>
export type ThingAttribute = keyof typeof wordsFor

/** The attributes that questions can ask for. */
export const attributes: ReadonlyArray<ThingAttribute> = Struct.keys(wordsFor)

/** Maps each thing to its attributes; no two things have the same attributes. */
export const things: Readonly<Record<string, ReadonlyArray<ThingAttribute>>> = {
  dog: ["alive", "animal", "legs", "fur", "swims", "pet"],
  cat: ["alive", "animal", "legs", "fur", "pet"],
  bear: ["alive", "animal", "legs", "fur", "swims", "heavy"],
  sheep: ["alive", "animal", "legs", "fur", "eaten"],
  bat: ["alive", "animal", "legs", "fur", "flies"],
  parrot: ["alive", "animal", "legs", "flies", "pet", "red"],
  canary: ["alive", "animal", "legs", "flies", "pet", "yellow"],
  bee: ["alive", "animal", "legs", "flies", "yellow"],
  duck: ["alive", "animal", "legs", "flies", "swims", "eaten"],
  elephant: ["alive", "animal", "legs", "swims", "heavy"],
  whale: ["alive", "animal", "swims", "heavy"],
  goldfish: ["alive", "animal", "swims", "pet", "red"],
  salmon: ["alive", "animal", "swims", "eaten"],
  lobster: ["alive", "animal", "swims", "eaten", "legs", "red"],
  oak: ["alive", "plant", "wood", "heavy"],
  rose: ["alive", "plant", "red"],
  sunflower: ["alive", "plant", "yellow", "round"],
  apple: ["plant", "eaten", "round", "red"],
  banana: ["plant", "eaten", "yellow"],
  lemon: ["plant", "eaten", "yellow", "round"],
  bread: ["eaten"],
  cheese: ["eaten", "yellow", "round"],
  table: ["wood", "legs", "heavy"],
  pencil: ["wood", "yellow"],
  violin: ["wood", "music"],
  piano: ["wood", "music", "heavy", "legs"],
  trumpet: ["metal", "music", "yellow"],
  drum: ["round", "music"],
  radio: ["electric", "music"],
  bicycle: ["metal", "wheels"],
  train: ["metal", "wheels", "electric", "heavy"],
  cart: ["wood", "wheels"],
  aeroplane: ["metal", "wheels", "flies", "heavy"],
  ship: ["metal", "swims", "heavy"],
  coin: ["metal", "round"],
  lamp: ["electric", "round"],
  kettle: ["metal", "electric"],
  balloon: ["round", "flies", "red"],
}

const names = Object.keys(things)

const wordsOf = (action: string): ReadonlyArray<string> =>
  Array.from(action.toLowerCase().matchAll(/\p{L}+/gu), ([word]) => word)

/** Maps each word for an attribute to the attribute. */
const forms = new Map(
  attributes.flatMap((attribute) => [attribute, ...wordsFor[attribute]].map((word) => [word, attribute] as const)),
)

/** Returns the common value of all items; undefined if they differ, or if there are none. */
const commonValue = <A>(items: ReadonlyArray<A>): A | undefined => (new Set(items).size === 1 ? items[0] : undefined)

export interface TwentyQuestionsTaskOptions {
  readonly id: string
  /** The name of the secret thing, a key of `things`. */
  readonly thing: string
  /** The number of questions that may be asked, 20 by default. */
  readonly questions?: number
  readonly metadata?: Readonly<Record<string, unknown>>
}

interface TwentyQuestionsState {
  readonly asked: number
}

const howTo = `Ask about one of: ${attributes.join(", ")}; or say what it is, such as "is it a ${names[0]}?".`

export const make = ({ id, thing, questions = 20, metadata = {} }: TwentyQuestionsTaskOptions): TextEnv => {
  const left = ({ asked }: TwentyQuestionsState): string => remaining(questions - asked, "question")
  const spent = (state: TwentyQuestionsState, reply: string) => {
    const next: TwentyQuestionsState = { asked: state.asked + 1 }
    return next.asked === questions
      ? ends(next, { score: 0, target: thing, message: `${reply} No question is left. It was: ${thing}.` })
      : continues(next, `${reply}\n${left(next)}`)
  }
  return game<TwentyQuestionsState>({
    id,
    type: "twenty_questions",
    metadata,
    maxSteps: 2 * questions,
    begin: () => ({
      state: { asked: 0 },
      observation: `I think of one of these: ${names.join(", ")}.\n${howTo} I answer with yes or no. ${left({ asked: 0 })}`,
    }),
    step: (state, action) => {
      const words = wordsOf(action)
      const named = commonValue(words.filter((word) => Object.hasOwn(things, word)))
      if (named === thing) return ends(state, { score: 1, target: thing, message: `Yes, it is: ${thing}.` })
      if (named !== undefined) return spent(state, `No, it is not: ${named}.`)
      const about = commonValue(words.map((word) => forms.get(word)).filter((attribute) => attribute !== undefined))
      if (about === undefined) return continues(state, `${howTo} ${left(state)}`)
      return spent(state, `${about}: ${things[thing].includes(about) ? "yes" : "no"}.`)
    },
  })
}

export const Config = Schema.Struct({
  type: withDefault(Schema.Literal("twenty_questions"), "twenty_questions"),
  ...levelFields,
  /** The number of questions that may be asked. */
  questions: withDefault(bounded("count"), 20),
})
export const kind = levelKind("twenty_questions", Config, ({ questions }, id, level, random) =>
  make({ id, thing: oneOf(names, random), questions, metadata: { level } }),
)
