/** Declares the line of JSON with which the master tells the process of another rank what to do. */
import { Schema } from "effect"
import { jsonText } from "../../base/config/jsonText.ts"
import { positiveInt } from "../../base/config/fields.ts"
import { backendNames } from "../../tensor/backend/names.ts"
import { RankTask } from "./RankTask.ts"

/** The message that a rank's process reads from its standard input: the work that it has to do. */
export const Start = jsonText(
  Schema.Struct({ task: RankTask, backend: Schema.Literals(backendNames), threads: positiveInt }),
)
