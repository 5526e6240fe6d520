/** Declares the messages with which the ranks change their runs together, and sends them through the `Store`. */
import { type Duration, Effect, Schema } from "effect"
import { jsonText } from "../../base/text/jsonText.ts"
import { naturalInt } from "../../base/config/fields.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { OrchestratorConfig } from "../config/OrchestratorConfig.ts"
import { Progress } from "./TrainedRun.ts"
import { ranksMissing, type Store, storeError } from "../store/Store.ts"

/** Runs with reasons: the evictions that a rank requests, or the creations that failed on it. */
const Reasons = Schema.Array(Schema.Struct({ generation: naturalInt, reason: Schema.String }))
export type Reasons = typeof Reasons.Type

/** The changes that all ranks apply in the same order. */
const Difference = Schema.Struct({
  /** The trained runs that leave; `reason` is null if the folder has vanished. */
  deletions: Schema.Array(Schema.Struct({ generation: naturalInt, reason: Schema.NullOr(Schema.String) })),
  creations: Schema.Array(
    Schema.Struct({
      index: naturalInt,
      id: Schema.String,
      generation: naturalInt,
      directory: Schema.String,
      config: OrchestratorConfig,
      progress: Progress,
    }),
  ),
  /** The progress of the trained runs, which the master changes and the other ranks copy. */
  trained: Schema.Array(Schema.Struct({ generation: naturalInt, progress: Progress, readyToUpdate: Schema.Boolean })),
  /** The reason why all ranks must stop; null to continue. */
  failure: Schema.NullOr(Schema.String),
})
export type Difference = typeof Difference.Type

const messageBy = <S extends Schema.Codec<unknown, unknown>>(schema: S) => {
  const json = jsonText(schema)
  const [encode, decode] = [Schema.encodeSync(json), Schema.decodeEffect(json)]
  return {
    encode: (value: S["Type"]): Uint8Array => utf8.encode(encode(value)),
    decode: (key: string, bytes: Uint8Array) =>
      Effect.mapError(decode(utf8.decode(bytes)), (error) =>
        storeError("read", key, `expected a message of this version of the library: ${error.message}`),
      ),
  }
}

const reasonsJson = messageBy(Reasons)
const differenceJson = messageBy(Difference)

/** Identifies this rank among the others. */
interface Place {
  readonly rank: number
  readonly ranks: number
  readonly deadline: Duration.Input
}

/** Makes the functions with which one rank exchanges messages. `turn` counts the common changes of the runs. */
export const exchangeOf = (store: Store["Service"], { rank, ranks, deadline }: Place) => {
  const requests = (turn: number): string => `runs/${turn}/requests`
  const difference = (turn: number): string => `runs/${turn}/difference`
  const outcomes = (turn: number): string => `runs/${turn}/outcomes`

  const gatherReasons = Effect.fnUntraced(function* (name: string, reasons: Reasons) {
    const values = yield* store.gather({ name, rank, ranks, deadline }, reasonsJson.encode(reasons))
    return yield* Effect.forEach(values, (value) => reasonsJson.decode(name, value))
  })

  return {
    /** Waits for all ranks, and returns the evictions that each rank requests. */
    requests: (turn: number, reasons: Reasons) => gatherReasons(requests(turn), reasons),
    publish: (turn: number, changes: Difference) => store.set(difference(turn), differenceJson.encode(changes)),
    receive: Effect.fnUntraced(function* (turn: number) {
      const name = difference(turn)
      // All ranks were alive a moment ago, so if the changes do not arrive, the master must have died.
      const value = yield* Effect.catchIf(
        store.wait(name, deadline),
        ({ reason }) => reason === "late",
        () => Effect.fail(ranksMissing({ name, ranks, deadline }, [0])),
      )
      return yield* differenceJson.decode(name, value)
    }),
    /** Waits for all ranks, and returns the creations that failed on each rank. */
    outcomes: (turn: number, reasons: Reasons) => gatherReasons(outcomes(turn), reasons),
    /** Removes the messages of a turn. All ranks must have finished the turn. */
    forget: Effect.fnUntraced(function* (turn: number) {
      yield* store.forget({ name: requests(turn), ranks })
      yield* store.remove(difference(turn))
      yield* store.forget({ name: outcomes(turn), ranks })
    }),
  }
}
