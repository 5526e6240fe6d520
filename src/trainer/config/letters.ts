/** Checks whether the alphabet of a model from scratch has all characters of the run's tasks. */
import { Effect } from "effect"
import { stream } from "../../base/rng/Rng.ts"
import type { TaskSet } from "../../agents/task/TaskSet.ts"

/** The number of tasks whose texts are checked. */
const compared = 16

/**
 * Returns the characters of the first tasks that are not in the alphabet. The model reads each of them as the same unknown
 * token, and cannot write it. Tasks that cannot be opened are skipped here; the run reports them.
 */
export const missingLetters = Effect.fnUntraced(function* (tasks: TaskSet, alphabet: string) {
  const known = new Set(alphabet)
  const texts = yield* Effect.forEach(Array.from({ length: Math.min(compared, tasks.size) }), (_, index) =>
    tasks.at(index).pipe(
      Effect.flatMap((task) =>
        task.type === "foreign"
          ? Effect.succeed("")
          : Effect.map(task.begin(stream(0, "env")), (begun) => begun.observation),
      ),
      Effect.scoped,
      Effect.orElseSucceed(() => ""),
    ),
  )
  return [...new Set(texts.join(""))].filter((character) => !known.has(character)).sort()
})

/** Makes the warning about a run whose tasks have characters that the alphabet lacks. */
export const lettersWarning = (run: string, missing: ReadonlyArray<string>): string => {
  const shown = missing.slice(0, 20).map((character) => JSON.stringify(character))
  const more = missing.length > shown.length ? ` and ${missing.length - shown.length} more` : ""
  return `runs.${run}: model.tokenizer.alphabet lacks ${shown.join(", ")}${more} of its tasks, which the model can neither read nor write; add them, or leave the alphabet out`
}
