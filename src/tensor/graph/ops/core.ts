/** Makes tensors, checks and combines their shapes, and throws `GraphError`s, for the functions that make ops. */
import { GraphError } from "../GraphError.ts"
import type { DType, Op, Shape, Tensor } from "../Tensor.ts"

let nextId = 0

const maxRank = 6

/** Makes a tensor. Throws a `GraphError` if it has too many axes or a size is not a whole number. */
export const make = (op: Op, inputs: ReadonlyArray<Tensor>, shape: Shape, dtype: DType): Tensor => {
  if (!isShape(shape)) {
    const wanted = `expected at most ${maxRank} axes, with sizes that are integers from 0 on`
    return fail("fn" in op ? op.fn : op.kind, `${wanted}, found shape ${shapeText(shape)}`, ...inputs)
  }
  return { id: nextId++, op, inputs, shape, dtype }
}

/** Returns the id that the next tensor will get, so that a caller can later tell which tensors are newer. */
export const nextMark = (): number => nextId

const isShape = (shape: Shape): boolean => shape.length <= maxRank && shape.every(isSize)

/** Tells whether a number can be the size of an axis: an integer that is not negative. */
export const isSize = (size: number): boolean => Number.isSafeInteger(size) && size >= 0

export const shapeText = (shape: Shape): string => `[${shape.join(", ")}]`

/** Throws a `GraphError` that names the op, the shapes, and the line outside of `graph/` that made the op. */
export const fail = (op: string, message: string, ...tensors: ReadonlyArray<Tensor>): never => {
  const shapes = tensors.map((tensor) => tensor.shape)
  const where = callerOutsideGraph()
  const inputs = shapes.length === 0 ? "" : ` (given ${shapes.map(shapeText).join(" and ")})`
  throw new GraphError({
    op,
    message: `${op}: ${message}${inputs}${where === "" ? "" : ` at ${where}`}`,
    shapes,
    where,
  })
}

/**
 * Finds the line that made an op: the first one in the stack that is outside of `graph/`. The first line of the stack
 * is in this function, so its path tells where `graph/` is. Returns "" in a bundle, where all code is in one file.
 */
const callerOutsideGraph = (): string => {
  const places = stackOf(50).flatMap(
    (line) =>
      /([^\s(]+:\d+):\d+\)?$/
        .exec(line)?.[1]
        ?.replace(/\?[^:]*/, "")
        .replaceAll("\\", "/") ?? [],
  )
  const [own = ""] = places
  const graphFolder = own.replace(/:\d+$/, "").replace(/ops\/[^/]*$/, "")
  return places.find((place) => !place.includes(graphFolder) && !place.startsWith("node:")) ?? ""
}

/** Returns the lines of the stack. By default, engines keep only ten lines, too few if ops call other ops. */
const stackOf = (depth: number): ReadonlyArray<string> => {
  const previousLimit = Error.stackTraceLimit
  Error.stackTraceLimit = depth
  const { stack = "" } = new Error()
  Error.stackTraceLimit = previousLimit
  return stack.split("\n")
}

export const expectDType = (op: string, dtypes: ReadonlyArray<DType>, ...tensors: ReadonlyArray<Tensor>): void => {
  for (const tensor of tensors) {
    if (!dtypes.includes(tensor.dtype)) fail(op, `expected ${dtypes.join(" or ")}, found ${tensor.dtype}`, ...tensors)
  }
}

/**
 * Computes the shape of a broadcast as NumPy does: shapes are aligned at the right, and sizes of 1 are stretched.
 * Returns undefined if two sizes of an axis differ and neither is 1.
 */
export const commonShape = (...shapes: ReadonlyArray<Shape>): Shape | undefined => {
  const rank = Math.max(...shapes.map((shape) => shape.length))
  const common: Array<number> = []
  for (let axis = 0; axis < rank; axis++) {
    const sizes = shapes.map((shape) => shape[axis - rank + shape.length] ?? 1)
    const size = sizes.find((own) => own !== 1) ?? 1
    if (sizes.some((own) => own !== 1 && own !== size)) return undefined
    common.push(size)
  }
  return common
}

export const broadcastShapes = (op: string, ...tensors: ReadonlyArray<Tensor>): Shape =>
  commonShape(...tensors.map(({ shape }) => shape)) ?? fail(op, "shapes do not broadcast", ...tensors)

/** Returns the permutation of `rank` axes that exchanges the last two, such as [0, 2, 1] for three axes. */
export const lastTwoSwapped = (rank: number): ReadonlyArray<number> =>
  Array.from({ length: rank }, (_, axis) => (axis < rank - 2 ? axis : 2 * rank - 3 - axis))

/**
 * Returns the index of an axis, which may be counted from the end (−1 is the last). Throws a `GraphError` if the tensor
 * has no such axis.
 */
export const normalAxis = (op: string, tensor: Tensor, axis: number): number => {
  const rank = tensor.shape.length
  const normal = axis < 0 ? axis + rank : axis
  if (!Number.isInteger(normal) || normal < 0 || normal >= rank) fail(op, `there is no axis ${axis}`, tensor)
  return normal
}

export const sameShape = (a: Shape, b: Shape): boolean =>
  a.length === b.length && a.every((size, axis) => size === b[axis])
