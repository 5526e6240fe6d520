/** Checks whether the alphabet of a model from scratch has all characters of the run's tasks and of their answers. */
import { Effect } from "effect"
import { messageOf } from "../../base/text/text.ts"
import { stream } from "../../base/rng/Rng.ts"
import { DatasetError, type TaskSet } from "../../agents/task/TaskSet.ts"
import type { MultiRunConfig } from "./MultiRunConfig.ts"

/** Returns the alphabet of a model from scratch; null if the model knows all characters. */
export const alphabetOf = ({ model }: Pick<MultiRunConfig, "model">): string | null =>
  model.type === "scratch" ? model.tokenizer.alphabet : null

/** The number of tasks of each data set whose texts are checked. */
const compared = 16

interface Compared {
  readonly type: string
  readonly tasks: TaskSet
}

/** The data sets of which programs play the tasks. Their texts are not checked, because each task would start a program. */
const played: ReadonlySet<string> = new Set(["foreign", "alfworld"])

/** Returns the first observation of a task and its right answer, or a good player's first move, if the task knows one. */
const textOf = Effect.fnUntraced(function* (tasks: TaskSet, index: number) {
  const { target, demonstrate, begin } = yield* tasks.at(index)
  const { observation } = yield* begin(stream(0, "env"))
  const move = yield* Effect.try({
    try: () => target ?? demonstrate?.(observation, stream(0, "demonstration"), 0) ?? "",
    catch: (error) => new DatasetError({ path: tasks.name, message: messageOf(error) }),
  })
  return observation + (typeof move === "string" ? move : `${move.name}${move.arguments}`)
}, Effect.scoped)

/**
 * Returns the characters in the first tasks of some data sets that are not in the alphabet. The model reads each of them as
 * the same unknown token, and cannot write it. Tasks that cannot be opened are skipped here; the run reports them.
 */
const missingLetters = Effect.fnUntraced(function* (datasets: ReadonlyArray<Compared>, alphabet: string) {
  const known = new Set(alphabet)
  const first = datasets.flatMap(({ type, tasks }) =>
    played.has(type) ? [] : Array.from({ length: Math.min(compared, tasks.size) }, (_, index) => textOf(tasks, index)),
  )
  const texts = yield* Effect.forEach(
    first,
    Effect.orElseSucceed(() => ""),
  )
  return [...new Set(texts.join(""))].filter((character) => !known.has(character)).sort()
})

/** Returns a warning about a run whose tasks have characters that the model's alphabet lacks; otherwise nothing. */
export const lettersWarnings = Effect.fnUntraced(function* (
  run: string,
  { train, validation }: { readonly train: Compared; readonly validation: Compared | null },
  alphabet: string,
) {
  const missing = yield* missingLetters(validation === null ? [train] : [train, validation], alphabet)
  if (missing.length === 0) return []
  const shown = missing.slice(0, 20).map((character) => JSON.stringify(character))
  const more = missing.length > shown.length ? ` and ${missing.length - shown.length} more` : ""
  return [
    `${run}: model.tokenizer.alphabet lacks ${shown.join(", ")}${more} of its tasks, which the model can neither read nor write; add them, or leave the alphabet out`,
  ]
})
