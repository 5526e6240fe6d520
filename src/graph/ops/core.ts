import { GraphError } from "../GraphError.ts"
import type { DType, Op, Shape, Tensor } from "../Tensor.ts"

/** What every op constructor is made of: a fresh tensor, shape arithmetic, and one way to complain. */

let nextId = 0

const maxRank = 6

export const make = (op: Op, inputs: ReadonlyArray<Tensor>, shape: Shape, dtype: DType): Tensor => {
  if (!isShape(shape)) {
    const wanted = `at most ${maxRank} axes of whole sizes`
    return fail("fn" in op ? op.fn : op.kind, `a shape is ${wanted}, not ${shapeText(shape)}`, ...inputs)
  }
  return { id: nextId++, op, inputs, shape, dtype }
}

/** Tensors made from now on have this id or a greater one. */
export const nextMark = (): number => nextId

const isShape = (shape: Shape): boolean => shape.length <= maxRank && shape.every(isSize)

/** A whole number from 0 on. */
export const isSize = (size: number): boolean => Number.isSafeInteger(size) && size >= 0

export const shapeText = (shape: Shape): string => `[${shape.join(", ")}]`

/** Never returns: throws a GraphError that names the op, the shapes, and the line outside this folder that asked. */
export const fail = (op: string, message: string, ...tensors: ReadonlyArray<Tensor>): never => {
  const shapes = tensors.map((tensor) => tensor.shape)
  const where = callerOutsideGraph()
  const given = shapes.length === 0 ? "" : ` (given ${shapes.map(shapeText).join(" and ")})`
  throw new GraphError({ op, message: `${op}: ${message}${given}${where === "" ? "" : ` at ${where}`}`, shapes, where })
}

/**
 * The line that asked for an op: the first call from outside of `graph/`. The first call of all is this function's own,
 * so its path says where `graph/` is; a bundle is one file, of which no line is outside.
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

/** An engine keeps ten calls otherwise, which ops made of ops use up. */
const stackOf = (depth: number): ReadonlyArray<string> => {
  const usual = Error.stackTraceLimit
  Error.stackTraceLimit = depth
  const { stack = "" } = new Error()
  Error.stackTraceLimit = usual
  return stack.split("\n")
}

export const expectDType = (op: string, dtypes: ReadonlyArray<DType>, ...tensors: ReadonlyArray<Tensor>): void => {
  for (const tensor of tensors) {
    if (!dtypes.includes(tensor.dtype)) fail(op, `expected ${dtypes.join(" or ")}, found ${tensor.dtype}`, ...tensors)
  }
}

/** NumPy's broadcasting: shapes are aligned at the right, 1 stretches. */
export const broadcastShapes = (op: string, ...tensors: ReadonlyArray<Tensor>): Shape => {
  const rank = Math.max(...tensors.map((tensor) => tensor.shape.length))
  return Array.from({ length: rank }, (_, axis) => {
    let size = 1
    for (const tensor of tensors) {
      const at = axis - rank + tensor.shape.length
      const own = at < 0 ? 1 : tensor.shape[at]
      if (own === 1 || own === size) continue
      if (size !== 1) fail(op, "shapes do not broadcast", ...tensors)
      size = own
    }
    return size
  })
}

/** An axis counted from the front; −1 is the last. */
export const normalAxis = (op: string, tensor: Tensor, axis: number): number => {
  const rank = tensor.shape.length
  const normal = axis < 0 ? axis + rank : axis
  if (!Number.isInteger(normal) || normal < 0 || normal >= rank) fail(op, `there is no axis ${axis}`, tensor)
  return normal
}

export const sameShape = (a: Shape, b: Shape): boolean =>
  a.length === b.length && a.every((size, axis) => size === b[axis])
