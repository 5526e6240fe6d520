/** Declares how the process of a rank ends: it is lost, or it says why it cannot work. */
import { Schema } from "effect"

/** A rank has ended, or does not answer, for no reason that it could tell. Another attempt may succeed. */
export class RankLost extends Schema.TaggedError<RankLost>()("RankLost", { message: Schema.String }) {}

/** A rank has told why it cannot work. Another attempt would fail, too. */
export class RankFailed extends Schema.TaggedError<RankFailed>()("RankFailed", { message: Schema.String }) {}
