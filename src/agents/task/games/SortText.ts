/**
 * Makes tasks that ask for the letters of a text in the order of the alphabet, such as `kestrel`, answered by `eeklrst`. The
 * texts are random letters, as in `reverse_text`.
 *
 * @example
 * ```yaml
 * train_dataset: { type: sort_text, num_tasks: 10000, seed: 1, max_letters: 8 }
 * ```
 */
import { Schema } from "effect"
import { withDefault } from "../../../base/config/fields.ts"
import { letterFields, letterKind } from "./letters.ts"

const Config = Schema.Struct({
  type: withDefault(Schema.Literal("sort_text"), "sort_text"),
  ...letterFields,
})
export const kind = letterKind("sort_text", Config, { verb: "sort", answer: (letters) => letters.toSorted() })
