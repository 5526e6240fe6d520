/** Describes a policy in the metadata of its ONNX file: the env and the spaces, so that it can act without the env. */
import * as Schema from "effect/Schema"
import { jsonText } from "../../base/text/jsonText.ts"
import { type ActionSpace, Json, type Space } from "../env/Space.ts"

const isAction = (space: Space): space is ActionSpace => space._tag !== "Dict" && space._tag !== "Tuple"

/** Everything that acting needs to know about a policy besides its programs. */
export const PolicyAbout = Schema.Struct({
  /** The id of the env in which the policy was trained. */
  env: Schema.String,
  /** The name of the algorithm that trained the policy. */
  algorithm: Schema.String,
  /** The step of the training at which the policy was saved. */
  step: Schema.Int,
  observationSpace: Json,
  actionSpace: Json.pipe(Schema.refine(isAction)),
  /** Whether a mask, which says which choices are allowed, follows each observation. */
  hasActionMask: Schema.Boolean,
})
export type PolicyAbout = typeof PolicyAbout.Type

const Text = jsonText(PolicyAbout)

/** Encodes the description as a line of JSON. */
export const aboutText = Schema.encodeSync(Text)

/** Decodes a description. Throws a SchemaError for other texts. */
export const aboutOf = Schema.decodeUnknownSync(Text)
