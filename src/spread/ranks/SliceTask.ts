import { Schema } from "effect"
import { positiveInt } from "../../base/config/fields.ts"

/** The task of a rank's process. The program and its inputs are not in it: the master sends them over the connection. */
export const SliceTask = Schema.Struct({
  /** The number of this rank, from 1. */
  rank: positiveInt,
  /** The number of threads that compute. */
  threads: positiveInt,
  /** The address of the master, and the token with which the rank identifies itself. */
  place: Schema.Struct({ host: Schema.String, port: Schema.Int, token: Schema.String }),
})
export type SliceTask = typeof SliceTask.Type
