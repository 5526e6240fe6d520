/** Declares what the master and the process of another rank tell each other, each as a line of JSON. */
import { Schema } from "effect"
import { positiveInt } from "../../config/fields.ts"
import { backendNames } from "../../backend/named-node.ts"
import { RankFailed, RankLost } from "./RankProcesses.ts"
import { RankTask } from "./RankTask.ts"

/** The message that a rank's process reads from its standard input: the work that it has to do. */
export const Start = Schema.fromJsonString(
  Schema.Struct({ task: RankTask, backend: Schema.Literals(backendNames), threads: positiveInt }),
)

/** The message that a rank's process writes to its standard output if it fails. */
export const Failure = Schema.fromJsonString(Schema.Union([RankLost, RankFailed]))
