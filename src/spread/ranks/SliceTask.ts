import { Schema } from "effect"
import { positiveInt } from "../../base/config/fields.ts"

/** Everything that the process of a rank has to know: it gets the program and its inputs from the master. */
export const SliceTask = Schema.Struct({
  /** This rank, from 1. */
  rank: positiveInt,
  /** The number of threads that compute. */
  threads: positiveInt,
  /** The address of the master, and the token that the rank shows there. */
  place: Schema.Struct({ host: Schema.String, port: Schema.Int, token: Schema.String }),
})
export type SliceTask = typeof SliceTask.Type
