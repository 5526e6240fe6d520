/**
 * Reads the flat rows of a batch in graphs: observations of any space as vectors or images, and action masks. Choices
 * become one-hot vectors. `trunk.ts` and the heads of networks use it.
 */
import { type ActionSpace, type Box, maskSizeOf, type LeafPart, partsOf, type RowSpace, sizeOf } from "../env/Space.ts"
import { cast, concat, mul, reshape, slice } from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { asNumbers, outputsFor } from "./actions.ts"

const imageIn = (space: RowSpace): Box | undefined =>
  space._tag === "Masked" ? imageIn(space.space) : space._tag === "Box" && space.shape.length === 3 ? space : undefined

/** Says whether observations are images, of shape [channels, height, width]. */
export const isImage = (space: RowSpace): boolean => imageIn(space) !== undefined

/** Returns the shape [channels, height, width] of observations that are images; undefined if they are none. */
export const imageShapeOf = (space: RowSpace): ReadonlyArray<number> | undefined => imageIn(space)?.shape

/** The largest value of a byte. */
const mostInByte = 255

/** Says whether an image has the numbers from 0 to 255. */
export const isOfBytes = ({ low, high }: Pick<Box, "low" | "high">): boolean =>
  low.every((bound) => bound === 0) && high.every((bound) => bound === mostInByte)

/** Returns an image in the range in which networks learn well: bytes are divided by 255. */
export const scaledImage = (space: Box, image: Tensor): Tensor =>
  isOfBytes(space) ? mul(image, 1 / mostInByte) : image

/** Says whether observations are images or have parts that are images. */
export const hasImages = (space: RowSpace): boolean => partsOf(space).some((part) => isImage(part.space))

/**
 * Returns the action masks of rows: 1 for each choice that is allowed, else 0, of shape [rows, choices]. It is undefined
 * if the rows have no masks.
 *
 * @example
 * ```ts
 * const space = Space.masked(Space.box(0, 1, [4]), Space.discrete(3))
 * maskOf(space, Graph.input("observations", [8, 7]))?.shape // [8, 3]
 * ```
 */
export const maskOf = (space: RowSpace, rows: Tensor): Tensor | undefined => {
  const choices = maskSizeOf(space)
  return choices === 0 ? undefined : slice(rows, [0, sizeOf(space) - choices], [rows.shape[0], choices])
}

/** Returns the observations in rows, without the action masks. */
export const withoutMask = (space: RowSpace, rows: Tensor): Tensor =>
  space._tag === "Masked" ? slice(rows, [0, 0], [rows.shape[0], sizeOf(space.space)]) : rows

/** Returns how many numbers a network reads for a part: n for a choice among n, which becomes one-hot. */
const widthOf = (space: ActionSpace): number => outputsFor(space)

/** Returns the length of the vectors that `asVectors` makes of observations. */
export const vectorSizeOf = (space: RowSpace): number =>
  partsOf(space).reduce((sum, part) => sum + widthOf(part.space), 0)

/**
 * Returns observations as vectors of real numbers, of shape [rows, `vectorSizeOf`]: all parts joined, with choices
 * one-hot. Vectors stay as they are.
 *
 * @example
 * ```ts
 * asVectors(Space.discrete(3), Graph.constant([2], [1, 1])) // [[0, 0, 1]]
 * ```
 */
export const asVectors = (space: RowSpace, rows: Tensor): Tensor => {
  const observations = withoutMask(space, rows)
  const parts = partsOf(space)
  if (parts.every((part) => part.space._tag === "Box")) return observations
  return joined(parts.map((part) => vectorOf(part, observations)))
}

/** Returns the numbers that a network reads for one part. */
export const vectorOf = ({ space, offset, size }: LeafPart, observations: Tensor): Tensor => {
  const [rows, all] = observations.shape
  const own = size === all ? observations : slice(observations, [0, offset], [rows, size])
  if (space._tag === "Box" || space._tag === "MultiBinary") return own
  return asNumbers(space, space._tag === "Discrete" ? reshape(cast(own, "i32"), [rows]) : cast(own, "i32"))
}

/** Joins the vectors of several parts. */
export const joined = (vectors: ReadonlyArray<Tensor>): Tensor =>
  vectors.length === 1 ? vectors[0] : concat(vectors, 1)
