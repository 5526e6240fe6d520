/**
 * Makes tasks that ask for a text written backwards, such as `kestrel`, answered by `lertsek`. The texts are random letters,
 * so a model cannot memorise the answers. The training of a small language model is usually tested first with this task: it
 * has one step, an exact answer, and a score for answers that are nearly right.
 *
 * @example
 * ```yaml
 * train_dataset: { type: reverse_text, num_tasks: 10000, seed: 1, max_letters: 8 }
 * validation_dataset: { type: reverse_text, num_tasks: 200, seed: 2, max_letters: 8 }
 * ```
 */
import { Schema } from "effect"
import { withDefault } from "../../../base/config/fields.ts"
import { letterFields, letterKind } from "./letters.ts"

const Config = Schema.Struct({
  type: withDefault(Schema.Literal("reverse_text"), "reverse_text"),
  ...letterFields,
})
export const kind = letterKind("reverse_text", Config, { verb: "reverse", answer: (letters) => letters.toReversed() })
