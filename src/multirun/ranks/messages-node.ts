/** Declares what the master and the process of another rank tell each other, each as a line of JSON. */
import { Schema } from "effect"
import { backendNames } from "../../backend/named-node.ts"
import { RankFailed, RankLost } from "./RankProcesses.ts"
import { RankTask } from "./RankTask.ts"

/** What a process is told on its standard input. */
export const Start = Schema.fromJsonString(Schema.Struct({ task: RankTask, backend: Schema.Literals(backendNames) }))

/** What a process tells on its standard output if it fails. */
export const Failure = Schema.fromJsonString(Schema.Union([RankLost, RankFailed]))
