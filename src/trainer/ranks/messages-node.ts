/** Declares the line of JSON in which the master sends a rank's process its task. */
import { Schema } from "effect"
import { jsonText } from "../../base/text/jsonText.ts"
import { positiveInt } from "../../base/config/fields.ts"
import { backendNames } from "../../tensor/backend/names.ts"
import { RankTask } from "./RankTask.ts"

/** The message that a rank's process reads from its standard input. */
export const Start = jsonText(
  Schema.Struct({ task: RankTask, backend: Schema.Literals(backendNames), threads: positiveInt }),
)
