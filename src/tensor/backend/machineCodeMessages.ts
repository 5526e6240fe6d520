/** Defines what `background-node.ts` sends to the process that compiles a program, `machine-code-node.ts`, and its answer. */
import * as Schema from "effect/Schema"
import { jsonText } from "../../base/text/jsonText.ts"

const Place = Schema.Struct({
  dtype: Schema.Literals(["f32", "i32", "i8", "bool"]),
  address: Schema.Int,
  length: Schema.Int,
})
const Places = Schema.Record(Schema.String, Place)
const Bytes = Schema.instanceOf(Uint8Array<ArrayBuffer>)
const AnyBytes = Schema.declare((value): value is Uint8Array => value instanceof Uint8Array)
const Segment = Schema.Struct({ address: Schema.Int, bytes: AnyBytes })

const Division = Schema.Struct({
  control: Schema.Int,
  slice: Schema.Int,
  fork: Schema.Int,
  awaitTurn: Schema.Int,
  endTurn: Schema.Int,
  others: Schema.Array(Schema.Int),
})

export const Request = Schema.Struct({
  compiler: Schema.Struct({
    command: Schema.Array(Schema.String),
    flags: Schema.Array(Schema.String),
    identity: Schema.String,
    lanes: Schema.Literals([4, 8, 16]),
  }),
  limits: Schema.Struct({ question: Schema.Finite, program: Schema.Finite, yields: Schema.Boolean }),
  /** The folder for libraries. */
  folder: Schema.String,
  compiled: Schema.Struct({
    bytes: Bytes,
    state: Places,
    programs: Schema.Record(
      Schema.String,
      Schema.Struct({ feeds: Places, results: Places, prepares: Schema.Boolean, divided: Schema.Boolean }),
    ),
    shared: Schema.UndefinedOr(
      Schema.Struct({ pages: Schema.Int, segments: Schema.Array(Segment), division: Division }),
    ),
    constants: Segment,
  }),
  /** The memory of the run, on a copy of which the library must compute the same bits; left out if it is large. */
  content: Schema.optionalKey(Bytes),
})

/** The path of the library, or the reason why there is none. */
export const Answer = jsonText(
  Schema.Union([Schema.Struct({ file: Schema.String }), Schema.Struct({ problem: Schema.String })]),
)
